"""The one writer of a trial's history."""

import time
from dataclasses import dataclass, field
from typing import Protocol

from chaoskit.model.history import Crossed, Event, from_line, to_line

BLOT = "[canary]"
"""What stands in a history where the agent let its key out."""


class Sink(Protocol):
    """Where history lines go as they happen; an open text file is one."""

    def write(self, line: str, /) -> object:
        """Take one line, its end included."""


@dataclass
class Recorder:
    """The one writer of a trial's history: numbers, times and writes each event.

    A trial that starts in a restored world goes on with that world's history: give
    its ``events`` and when it ``began`` on the monotonic clock.
    """

    sink: Sink | None = None
    secret: str | None = None
    events: list[Event] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def __call__(self, event: Event) -> Event:
        """Place the event at the end of the history."""
        stamp = {"seq": len(self.events), "t": self.seconds()}
        return self._write(event.model_copy(update=stamp))

    def crossed(
        self, life: int, address: str, pieces: int | None = None, *, late: bool = False
    ) -> None:
        """Place a `Crossed`, made with its number and time: a copy costs more."""
        seq, t = len(self.events), self.seconds()
        self._write(Crossed.of(seq, t, life, address, pieces, late=late))

    def place(self, event: Event) -> Event:
        """Place an event that has its time already."""
        return self._write(event.model_copy(update={"seq": len(self.events)}))

    def _write(self, placed: Event) -> Event:
        line = to_line(placed)
        if self.secret is not None and self.secret in line:
            line = line.replace(self.secret, BLOT)
            placed = from_line(line)
        self.events.append(placed)
        if self.sink is not None:
            self.sink.write(line + "\n")
        return placed

    def seconds(self) -> float:
        """Seconds since the trial began."""
        return round(time.monotonic() - self.began, 6)
