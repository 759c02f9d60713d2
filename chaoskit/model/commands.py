"""Commands as a manifest writes them: lists of words with placeholders in braces."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from chaoskit.model.errors import did_you_mean
from chaoskit.model.fields import AnyText, flaw

PLACEHOLDERS: Mapping[str, str] = {
    "run": "the run's id, fresh for every trial",
    "goal": "the task in words",
    "store": "the kind of store",
    "python": "the interpreter that chaoskit runs on",
    "answer": "a human's answer; in `answer` only",
}

_COMMON = tuple(name for name in PLACEHOLDERS if name != "answer")
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def fill(command: tuple[str, ...], values: Mapping[str, str]) -> list[str]:
    """The command with its placeholders replaced; `{{` and `}}` become braces.

    Raises KeyError for a placeholder that has no value.
    """
    return [fill_text(word, values) for word in command]


def fill_text(text: str, values: Mapping[str, str]) -> str:
    """One text with its placeholders replaced, as `fill` does for a command."""

    def replacement(match: re.Match[str]) -> str:
        name = match[1]
        return match[0][0] if name is None else values[name]

    return _BRACES.sub(replacement, text)


def _placeholders(allowed: tuple[str, ...]) -> Callable[[str], str]:
    def check(text: str) -> str:
        for match in _BRACES.finditer(text):
            if match[0] in ("{", "}"):
                raise flaw("braces in pairs", f"write a plain brace as {match[0] * 2}")
            if match[1] is not None and match[1] not in allowed:
                raise _unknown_placeholder(match[1], allowed)
        return text

    return check


def _unknown_placeholder(name: str, allowed: tuple[str, ...]) -> Exception:
    expected = f"only the placeholders {' '.join(f'{{{each}}}' for each in allowed)}"
    if name in PLACEHOLDERS:
        return flaw(expected, f"{{{name}}} has a value in the `answer` command only")
    guess = did_you_mean(name, allowed)
    return flaw(expected, guess or "write plain braces as {{ and }}")


def _pattern(allowed: tuple[str, ...]) -> dict[str, Any]:
    names = "|".join(allowed)
    return {"pattern": r"^([^{}]|\{\{|\}\}|\{(" + names + r")\})*$"}


def _is_list(command: Any) -> Any:
    if isinstance(command, list | tuple):
        return command
    raise flaw("a list of words, the program first", _as_list(command))


def _as_list(command: Any) -> str:
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        words = []
    example = json.dumps(words or ["python", "agent.py"], ensure_ascii=False)
    return f"write it as a list: {example}"


def _has_program(command: tuple[str, ...]) -> tuple[str, ...]:
    if command and command[0]:
        return command
    raise flaw("a list of words, the program first", _as_list(None))


_LIST = (
    BeforeValidator(_is_list),
    AfterValidator(_has_program),
    Field(json_schema_extra={"minItems": 1}),
)
FilledText = Annotated[
    AnyText,
    AfterValidator(_placeholders(_COMMON)),
    Field(json_schema_extra=_pattern(_COMMON)),
]
AnswerText = Annotated[
    AnyText,
    AfterValidator(_placeholders(tuple(PLACEHOLDERS))),
    Field(json_schema_extra=_pattern(tuple(PLACEHOLDERS))),
]
Command = Annotated[tuple[FilledText, ...], *_LIST]
AnswerCommand = Annotated[tuple[AnswerText, ...], *_LIST]
