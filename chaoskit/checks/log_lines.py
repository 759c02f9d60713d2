"""A log line as the checks read it: what its event means, and a finding about it."""

import re
from collections.abc import Iterable
from typing import cast

from pydantic import JsonValue

from chaoskit.model.history import LifeEnded, LifeStarted, Logged
from chaoskit.model.manifest import Manifest
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding

PROMISE = "log"

# `tool.start`, `tool_start`, `toolStart`.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _words(line: Logged, manifest: Manifest) -> list[str]:
    event = str(line.entry.get(manifest.log.event, ""))
    return [word.lower() for word in _WORD.findall(event)]


def meaning(line: Logged, manifest: Manifest) -> str:
    """The last word of its event: ``start``, ``intent``, ``result``, ``end``."""
    return "".join(_words(line, manifest)[-1:])


def about(line: Logged, manifest: Manifest) -> str:
    """The words before that: ``tool``, ``model``, ``run``."""
    return ".".join(_words(line, manifest)[:-1])


def shown(line: Logged) -> str:
    """The line, cut to a length that a report can bear."""
    return str(line.entry)[:200]


def finding(
    requirement: str,
    message: str,
    expected: object,
    observed: object,
    lines: Iterable[Logged],
    subject: str = "",
) -> Finding:
    """A finding that rests on some lines."""
    return Finding(
        PROMISE,
        requirement,
        message,
        expected=cast(JsonValue, expected),
        observed=cast(JsonValue, observed),
        subject=subject,
        events=tuple(line.seq for line in lines),
    )


def is_of_no_run(trial: Trial, line: Logged, manifest: Manifest) -> bool:
    """A worker has more to say than of this run."""
    return trial.is_fleet and line.entry.get(manifest.log.run_id) is None


class Order:
    """Which of two lives was surely first: of those side by side none was."""

    def __init__(self, trial: Trial) -> None:
        self._is_fleet = trial.is_fleet
        self._began = {start.life: start.seq for start in trial.of(LifeStarted)}
        self._ended = {end.life: end.seq for end in trial.of(LifeEnded)}

    def surely(self, one: int, other: int) -> bool:
        """Whether all that one life wrote came before all that the other did."""
        if not self._is_fleet:
            return one < other
        never = float("inf")
        return self._ended.get(one, never) < self._began.get(other, -1)
