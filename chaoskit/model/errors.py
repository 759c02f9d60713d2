"""What is wrong with an input, in a form that both people and programs can use."""

import difflib
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

QUOTED_LENGTH_MAX = 60
ADVICE_LENGTH_MAX = 500
LISTED_MAX = 20
COMPARED_MAX = 200


@dataclass(frozen=True)
class Problem:
    """One thing in a file that has to change before it can be used."""

    file: str
    line: int | None
    """Counted from 1; None when the file itself is the problem."""
    column: int | None
    path: str
    """Where in the file, as in ``$.tools.hold_seat``; ``$`` is the whole file."""
    value: str
    """What was found there, already quoted and shortened."""
    expected: str
    hint: str | None = None
    """The likely fix, where there is one."""

    def __str__(self) -> str:
        place = ":".join(str(p) for p in (self.file, self.line, self.column) if p)
        advice = f"{self.expected}; {self.hint}" if self.hint else self.expected
        return (
            f"{printable(place)}: {self.path}: found {self.value}\n"
            f"    expected {printable(_shortened(advice, ADVICE_LENGTH_MAX))}"
        )


class InputError(Exception):
    """The input cannot be used; carries every problem that was found in it."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


@dataclass(frozen=True)
class Flaw:
    """A broken rule between fields of one model, without its place in a file."""

    location: tuple[str | int, ...]
    expected: str
    hint: str | None = None

    def __str__(self) -> str:
        where = ".".join(str(part) for part in self.location)
        return f"{where}: expected {self.expected}"


def quoted(value: Any) -> str:
    """A value for use in a message: as JSON, one line, about 60 characters at most."""
    if isinstance(value, str):
        value = _shortened(value)
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _shortened(printable(text[: 2 * QUOTED_LENGTH_MAX]))


def listed(names: Collection[str]) -> str:
    """The names with commas; of many only the first."""
    shown = list(islice(names, LISTED_MAX))
    return ", ".join([*shown, "…"] if len(names) > LISTED_MAX else shown)


def printable(text: str) -> str:
    """The text with control characters, also invisible ones, written as escapes."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text
    )


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint at the known word that was probably meant, if one is close enough."""
    by_folded = {name.lower(): name for name in islice(known, COMPARED_MAX)}
    close = difflib.get_close_matches(word.lower(), by_folded, n=1, cutoff=0.6)
    return f"did you mean '{by_folded[close[0]]}'?" if close else None


def _shortened(text: str, length: int = QUOTED_LENGTH_MAX) -> str:
    return text if len(text) <= length else text[:length] + "…"
