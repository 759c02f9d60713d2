"""What operators read: JSON on standard error, one object a line.

Every line says where the run is: run id, step, and the newest durable checkpoint. No
content goes in, only its hashes: a goal, a reply or a result may hold what is private.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, TextIO

from reference_agent.stores.base import UnreadableCheckpoint


class Place(Protocol):
    """Where a run is; a `State` is one."""

    @property
    def run_id(self) -> str:
        """Of the run."""

    @property
    def step(self) -> int:
        """Of the run, 0 before its first question."""

    @property
    def checkpoint_id(self) -> int:
        """The newest durable one, 0 before the first."""


@dataclass(frozen=True)
class Nowhere:
    """The place of a run whose checkpoint cannot be read, as far as it is known."""

    run_id: str
    step: int
    checkpoint_id: int


class Log:
    """Writes lines as they happen: what a killed process logged is there."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(
        self, place: Place, event: str, level: str = "info", **fields: object
    ) -> None:
        line = {
            "time": timestamp(),
            "level": level,
            "event": event,
            "run_id": place.run_id,
            "step": place.step,
            "checkpoint_id": place.checkpoint_id,
            **fields,
        }
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()

    def say(self, who: str, words: str) -> None:
        """Words for a person, on a line that is no log line."""
        self._stream.write(f"{who}: {words}\n")
        self._stream.flush()

    def unreadable(self, run_id: str, error: UnreadableCheckpoint) -> None:
        """A run that fails although its checkpoint cannot say so: a line, and why."""
        place = Nowhere(run_id, error.step, error.checkpoint_id)
        self(place, "run.end", "error", status="failed")
        words = f"the checkpoint cannot be used and was left as it is: {error}"
        self.say(f"run {run_id}", words)


def timestamp() -> str:
    """The time, ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat()
