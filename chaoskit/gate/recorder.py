"""The one writer of a trial's history."""

import time
from dataclasses import dataclass, field
from typing import Protocol

from pydantic_core import PydanticSerializationError

from chaoskit.gate.blots import BLOT, Blots
from chaoskit.gate.drift import Drift
from chaoskit.model.history import (
    ClockLeapt,
    Crossed,
    Delivered,
    Event,
    Leaked,
    from_line,
    storable,
    to_line,
)


class Sink(Protocol):
    """Where history lines go as they happen; an open text file is one."""

    def write(self, line: str, /) -> object:
        """Take one line, its end included."""


@dataclass
class Recorder:
    """The one writer of a trial's history: numbers, times and writes each event.

    Where the machine's clock leapt before an event, a `ClockLeapt` comes before it.
    What ``blots`` names is never written; a call that held the canary has a `Leaked`
    after it, the first time that one of its tool does.

    A trial that starts in a restored world goes on with that world's history: give
    its ``events`` and when it ``began`` on the monotonic clock.
    """

    sink: Sink | None = None
    blots: Blots | None = None
    events: list[Event] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    drift: Drift = field(default_factory=Drift)

    def __call__(self, event: Event) -> Event:
        """Place the event at the end of the history."""
        self._watch_the_clock()
        stamp = {"seq": len(self.events), "t": self.seconds()}
        return self._write(event.model_copy(update=stamp))

    def crossed(
        self, life: int, address: str, pieces: int | None = None, *, late: bool = False
    ) -> None:
        """Place a `Crossed`, made with its number and time: a copy costs more."""
        self._watch_the_clock()
        seq, t = len(self.events), self.seconds()
        self._write(Crossed.of(seq, t, life, address, pieces, late=late))

    def place(self, event: Event) -> Event:
        """Place an event that has its time already."""
        return self._write(event.model_copy(update={"seq": len(self.events)}))

    def leaked(self, life: int, where: str) -> None:
        """Tell a place at which the canary was found, once."""
        if not any(isinstance(e, Leaked) and e.where == where for e in self.events):
            self(Leaked(life=life, where=where))

    def _watch_the_clock(self) -> None:
        if leap := self.drift.leap():
            told = ClockLeapt(life=-1, seconds=round(leap, 3))
            stamp = {"seq": len(self.events), "t": self.seconds()}
            self._write(told.model_copy(update=stamp))

    def _write(self, placed: Event) -> Event:
        try:
            line = to_line(placed)
        except PydanticSerializationError:  # an agent's half of a surrogate pair
            placed = storable(placed)
            line = to_line(placed)
        written = line if self.blots is None else self.blots.text(line)
        if written is not line:
            placed = from_line(written)
        self.events.append(placed)
        if self.sink is not None:
            self.sink.write(written + "\n")
        if written is line or not isinstance(placed, Delivered):
            return placed
        if written.count(BLOT) > line.count(BLOT):
            self.leaked(placed.life, f"a call of {placed.tool}")
        return placed

    def seconds(self) -> float:
        """Seconds since the trial began."""
        return round(time.monotonic() - self.began, 6)
