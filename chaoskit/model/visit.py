"""Visits: what an explorer asks for, and what comes back."""

from dataclasses import dataclass, field

from chaoskit.model.address import Operation
from chaoskit.model.faults import Wanted
from chaoskit.model.schedule import Schedule
from chaoskit.model.state import WorldState
from chaoskit.model.trial import Trial


@dataclass(frozen=True)
class Tread:
    """That each life is ended by a fault where it comes to a place that is new.

    See `chaoskit.explore.treadmill`. Of the ``periodic`` operations a life is ended at
    the first one only.
    """

    fault: Wanted
    periodic: frozenset[Operation] = frozenset()


@dataclass(frozen=True)
class Visit:
    """One trial to run: a schedule from a fresh world, or one recovery of a state.

    A recovery starts the next life in ``origin`` and needs no schedule. With a
    ``tread`` the schedule is what comes of it.
    """

    schedule: Schedule = field(default_factory=Schedule)
    origin: WorldState | None = None
    tread: Tread | None = None


@dataclass(frozen=True)
class Look:
    """The world as it was at one crossing; ``fingerprint`` once a canon is known."""

    state: WorldState
    address: str
    fingerprint: str | None = None


@dataclass(frozen=True)
class Visited:
    """A finished visit.

    ``looks`` are the worlds that it passed and that nobody had seen yet.
    """

    visit: Visit
    trial: Trial
    looks: tuple[Look, ...] = ()
