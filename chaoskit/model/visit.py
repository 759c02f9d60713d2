"""Visits: what an explorer asks for, and what comes back."""

from dataclasses import dataclass, field

from chaoskit.model.faults import Wanted
from chaoskit.model.schedule import Schedule
from chaoskit.model.state import WorldState
from chaoskit.model.trial import Trial

Role = tuple[str, str, frozenset[str]]
"""An operation, an edge, and the results that the model had been told by then."""
Beginning = tuple[str, int, int]
"""The wreck in which a life begins, and how many effects and answers there were."""
Place = tuple[Beginning, str]
"""A crossing of the lives that begin there."""


@dataclass(frozen=True)
class Tread:
    """That each life is ended by a fault where it comes to a crossing that is ``due``.

    Where an earlier run was given up: ``row_max`` is the most lives that are ended
    before the run has come further, ``trodden`` are the places where that was done, and
    ``found`` is what a life leaves that did nothing. See `chaoskit.explore.steps`.
    """

    fault: Wanted
    due: tuple[Role, ...] = ()
    row_max: int | None = None
    trodden: frozenset[Place] = frozenset()
    found: str | None = None


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
