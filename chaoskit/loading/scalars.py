"""What a scalar without quotes means: the core schema of YAML 1.2.

Where readers of YAML disagree (dates), or JSON has no such value (NaN, infinities),
nothing is guessed: the author is asked to say it in quotes or as another number.
"""

import json
import math
import re

from chaoskit.loading.nodes import Scalar

WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
DIGITS_MAX = 300

_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([Tt \t]+\d\d?:\d\d:\d\d.*)?")


class UnclearError(Exception):
    """A scalar that has no safe meaning."""

    def __init__(self, expected: str, hint: str | None = None) -> None:
        super().__init__(expected, hint)
        self.expected = expected
        self.hint = hint


def resolve(text: str) -> Scalar:
    """The value of a plain scalar. Raises UnclearError where a guess is not safe."""
    if text in WORDS:
        return WORDS[text]
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        return _float(text)
    if _DATE.fullmatch(text):
        raise UnclearError("a date as text, in quotes", f"quote it: {in_quotes(text)}")
    return text


def in_quotes(text: str) -> str:
    """The text as YAML with quotes."""
    return json.dumps(text, ensure_ascii=False)


def _integer(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise UnclearError(f"a number of at most {DIGITS_MAX} digits", "quote it")
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def _float(text: str) -> float:
    number = math.nan if _NOT_FINITE.fullmatch(text) else float(text)
    if math.isfinite(number):
        return number
    raise UnclearError("a finite number")
