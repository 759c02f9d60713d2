"""Findings and verdicts, and how verdicts add up."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from pydantic import JsonValue


class Severity(StrEnum):
    """MUST fails a run; SHOULD only warns."""

    MUST = "must"
    SHOULD = "should"


class Verdict(IntEnum):
    """The worst verdict of many is theirs together, hence the order."""

    PASS = 0
    INCONCLUSIVE = 1
    FAIL = 2

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def worst(cls, verdicts: Iterable["Verdict"]) -> "Verdict":
        """The weightiest of the verdicts; pass if there are none."""
        return max(verdicts, default=cls.PASS)


@dataclass(frozen=True)
class Finding:
    """One broken promise in one trial.

    ``requirement`` is a readable id such as ``effects/once-across-kill``; ``message``
    is a sentence that a person can act on; ``events`` are the ``seq`` numbers of the
    events of the trial's history on which it rests; ``subject`` tells findings of one
    requirement apart (the call, the wait, the log event they are about). ``follows``
    is the requirement of another finding of the trial that this one comes from.
    """

    promise: str
    requirement: str
    message: str
    expected: JsonValue
    observed: JsonValue
    subject: str = ""
    events: tuple[int, ...] = ()
    severity: Severity = Severity.MUST
    follows: str = ""

    @property
    def cause(self) -> tuple[str, str]:
        """What makes two findings of different trials the same finding."""
        return self.requirement, self.subject
