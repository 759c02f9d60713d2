"""A trial: one schedule, and all that it produced."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TypeVar

from chaoskit.model.address import Address
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import (
    ClockLeapt,
    Crossed,
    FaultFired,
    History,
    LifeEnded,
    LifeStarted,
    RunEnded,
    StatusSeen,
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
    def again(self) -> frozenset[int]:
        """The lives that were started once more after ``done``."""
        starts = self.of(LifeStarted)
        return frozenset(start.life for start in starts if start.purpose == "again")

    @cached_property
    def processes(self) -> dict[int, str]:
        """The names of a long-lived agent's processes, by life."""
        starts = self.of(LifeStarted)
        return {start.life: start.process for start in starts if start.process}

    @property
    def is_fleet(self) -> bool:
        """Whether the agent is long-lived, so that several lives run side by side."""
        return bool(self.processes)

    @cached_property
    def clock_leapt(self) -> bool:
        """Whether agents may have kept their times by a clock that is not ours."""
        fired = (Fault.parse(event.fault) for event in self.of(FaultFired))
        is_skewed = any(fault.kind is FaultKind.SKEW for fault in fired)
        return is_skewed or any(self.of(ClockLeapt))

    def spoken(self, life: int) -> str:
        """A life in words: `life 3 (worker.2)`, where it has a name."""
        name = self.processes.get(life)
        return f"life {life}" if name is None else f"life {life} ({name})"

    @cached_property
    def addresses(self) -> tuple[Address, ...]:
        """Every crossing in time, in order, but those of the life after ``done``.

        Nor those of processes that end once their run is over: no fault strikes then.
        """
        return tuple(crossed.at for crossed in self.crossed)

    @cached_property
    def crossed(self) -> tuple[Crossed, ...]:
        """The events of the `addresses`; a place inside a reply is none of them.

        What several processes tried in vain has the address of the next who tries, and
        counts once (see `Gate.has_applied`).
        """
        first: dict[str, Crossed] = {}
        over = (e.seq for e in self.of(StatusSeen) if e.status in ("done", "failed"))
        end = next(over, inf)
        for crossed in self.of(Crossed):
            in_time = not crossed.late and crossed.life not in self.again
            in_time &= crossed.seq < end
            if in_time and crossed.at.edge.part is None:
                first.setdefault(crossed.address, crossed)
        return tuple(first.values())

    @cached_property
    def pieces(self) -> dict[str, int]:
        """How many pieces the message at an address has, where it can be cut."""
        return {c.address: c.pieces for c in self.of(Crossed) if c.pieces is not None}

    @cached_property
    def struck(self) -> tuple[Fault, ...]:
        """The faults that really struck: not idle, and a kill's life died of it."""
        kills = set(self.kills)
        events = (event for event in self.of(FaultFired) if not event.idle)
        fired = (Fault.parse(event.fault) for event in events)
        return tuple(f for f in fired if not f.ends_its_life or f in kills)

    @cached_property
    def kills(self) -> tuple[Fault, ...]:
        """The kills that fired and whose life really died of the signal."""
        died = {
            end.life
            for end in self.of(LifeEnded)
            if end.cause == "fault" and end.signal == SIGKILL
        }
        fired = (event for event in self.of(FaultFired) if event.life in died)
        faults = (Fault.parse(event.fault) for event in fired)
        return tuple(fault for fault in faults if fault.ends_its_life)
