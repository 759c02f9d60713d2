"""Where each life of a treadmill ends: where it comes to a crossing that is still due.

Due are the crossings of the fault-free run, once each. In a later life the same one has
another address; its *role* in the run is the same: it does the same to the same, at the
same edge, when the model has been told the same results.

A life that begins in the wreck that another one began in does at first what that one
did, the same roles included, and is ended one crossing later. An agent that counts its
lives in its store begins in a new wreck each time: it is ended no more often than there
are crossings due, and comes to its end all the same.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from chaoskit.model.address import Address
from chaoskit.model.calls import Identity, identity
from chaoskit.model.history import (
    Applied,
    Asked,
    Crossed,
    Event,
    FaultFired,
    LifeStarted,
    Wreck,
)
from chaoskit.model.schedule import Fault
from chaoskit.model.visit import Role, Tread

Beginning = tuple[str, int, int]
"""The wreck in which a life begins, and how many effects and answers there were."""
Place = tuple[Beginning, str]


@dataclass
class Course:
    """How far a run has come, read off a history that may still grow."""

    events: Sequence[Event]
    told: frozenset[str] = frozenset()
    wreck: str = ""
    _read: int = 0
    _applied: set[Identity] = field(default_factory=set)
    _answers: set[str] = field(default_factory=set)
    _first_wreck: str | None = None

    def read(self, end: int | None = None) -> None:
        """Take in what has happened since the last time, or up to an event."""
        end = len(self.events) if end is None else end
        for event in self.events[self._read : end]:
            self._take(event)
        self._read = max(self._read, end)

    def _take(self, event: Event) -> None:
        match event:
            case Asked():
                self.told |= set(event.carried)
            case Applied():
                self._applied.add(identity(event))
            case LifeStarted() if event.answer is not None:
                self._answers.add(event.answer)
            case Wreck():
                # The first life dies at its first crossing, and leaves what it found.
                self._first_wreck = self._first_wreck or event.state
                self.wreck = "" if event.state == self._first_wreck else event.state

    @property
    def now(self) -> Beginning:
        """Where a life would begin now."""
        return self.wreck, len(self._applied), len(self._answers)

    def role(self, address: Address) -> Role:
        """What a crossing does that comes up now."""
        return str(address.operation), str(address.edge), self.told


class Steps:
    """Decides, while one trial runs, where each of its lives ends."""

    def __init__(self, tread: Tread, events: Sequence[Event]) -> None:
        self._fault = tread.fault
        self._due = Counter(tread.due)
        self._course = Course(events)
        self._began: dict[int | None, Beginning] = {}
        self._trodden: set[Place] = set()

    def __call__(self, address: Address) -> Fault | None:
        """The fault that strikes at a crossing that has come up, if one does."""
        self._course.read()
        place = self._began.setdefault(address.life, self._course.now), address.point
        role = self._course.role(address)
        if place in self._trodden or not self._due[role]:
            return None
        self._trodden.add(place)
        self._due[role] -= 1
        kind, argument = self._fault
        return Fault(kind, address, argument)


def roles(
    history: Sequence[Event], kind: type[Crossed] | type[FaultFired] = Crossed
) -> Iterator[tuple[Address, Role]]:
    """The addresses of a history's crossings, or faults, each with its role."""
    course = Course(history)
    for place, event in enumerate(history):
        if isinstance(event, kind):
            course.read(place)
            at = _address(event)
            yield at, course.role(at)


def _address(event: Crossed | FaultFired) -> Address:
    return event.at if isinstance(event, Crossed) else Fault.parse(event.fault).at
