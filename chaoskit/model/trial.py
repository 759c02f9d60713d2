"""A trial: one schedule, and all that it produced."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from chaoskit.model.address import Address
from chaoskit.model.history import (
    Crossed,
    FaultFired,
    History,
    LifeEnded,
    LifeStarted,
    RunEnded,
)
from chaoskit.model.schedule import Fault, Schedule

SIGKILL = 9

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Trial:
    """One schedule and its history; judged by pure functions, now or years later.

    ``name`` is the trial's folder in the campaign's output; ``unfired`` are the faults
    that were scheduled and never struck.
    """

    name: str
    run_id: str
    schedule: Schedule
    history: History
    unfired: tuple[Fault, ...] = ()

    def of(self, kind: type[Kind]) -> Iterator[Kind]:
        """The events of one class, in order."""
        return (event for event in self.history if isinstance(event, kind))

    @cached_property
    def ended(self) -> RunEnded:
        """How the run ended; endless where its history stops short."""
        last = self.history[-1] if self.history else None
        if isinstance(last, RunEnded):
            return last
        return RunEnded(life=0, outcome="endless", reason="the history stops short")

    @cached_property
    def again(self) -> int | None:
        """The number of the life that was started once more after ``done``."""
        return next(
            (life.life for life in self.of(LifeStarted) if life.purpose == "again"),
            None,
        )

    @cached_property
    def addresses(self) -> tuple[Address, ...]:
        """Every crossing in time, in order, but those of the life after ``done``."""
        crossed = (c for c in self.of(Crossed) if not c.late and c.life != self.again)
        return tuple(c.at for c in crossed)

    @cached_property
    def kills(self) -> tuple[Fault, ...]:
        """The faults that fired and whose life really died of the signal."""
        died = {
            end.life
            for end in self.of(LifeEnded)
            if end.cause == "fault" and end.signal == SIGKILL
        }
        fired = (event for event in self.of(FaultFired) if event.life in died)
        return tuple(Fault.parse(event.fault) for event in fired)
