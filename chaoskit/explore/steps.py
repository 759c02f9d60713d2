"""Where each life of a treadmill ends: where it comes to a crossing that is still due.

Due are the crossings of the fault-free run, once each. In a later life the same one has
another address; its *role* in the run is the same: it does the same to the same, at the
same edge, when the model has been told the same results.

A life that begins in the wreck that another one began in does at first what that one
did, the same roles included, and is ended one crossing later. An agent that counts its
lives in its store begins in a new wreck each time: it is ended no more often than there
are crossings due, and comes to its end all the same.

One that gives a run up after so many lives that came to nothing is let go on before
that, and a further run goes on at the places that are still untrodden.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

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
from chaoskit.model.visit import Beginning, Role, Tread


@dataclass
class Course:
    """How far a run has come, read off a history that may still grow."""

    events: Sequence[Event]
    told: frozenset[str] = frozenset()
    wreck: str = ""
    found: str | None = None
    """What a life leaves that did nothing."""
    _read: int = 0
    _applied: set[Identity] = field(default_factory=set)
    _answers: set[str] = field(default_factory=set)

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
                self.found = self.found or event.state
                self.wreck = "" if event.state == self.found else event.state

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
        self._row_max = tread.row_max
        self._course = Course(events, found=tread.found)
        self._began: dict[int | None, Beginning] = {}
        self._trodden = set(tread.trodden)
        self._row = _Row()

    def __call__(self, address: Address) -> Fault | None:
        """The fault that strikes at a crossing that has come up, if one does."""
        self._course.read()
        place = self._began.setdefault(address.life, self._course.now), address.point
        role = self._course.role(address)
        self._row.see(self._course.told)
        if place in self._trodden or not self._due[role] or self._is_enough():
            return None
        self._trodden.add(place)
        self._due[role] -= 1
        self._row.here += 1
        kind, argument = self._fault
        return Fault(kind, address, argument)

    def _is_enough(self) -> bool:
        """Whether one more life that comes to nothing would be one too many."""
        limit = self._row_max
        return limit is not None and self._row.before + self._row.here >= limit


@dataclass
class _Row:
    """How many lives came to nothing ``here``, where the model was told no more.

    Somewhere before it is told more the run is saved, and whoever counts counts anew:
    after that those of one such stretch and of the one ``before`` may be in one row.
    """

    told: frozenset[str] = frozenset()
    before: int = 0
    here: int = 0

    def see(self, told: frozenset[str]) -> None:
        """What the model has been told by now."""
        if told != self.told:
            self.told, self.before, self.here = told, self.here, 0


def trodden(tread: Tread, history: Sequence[Event]) -> Tread:
    """The same with what a run has trodden."""
    course = Course(history, found=tread.found)
    began: dict[int, Beginning] = {}
    places = set(tread.trodden)
    due = Counter(tread.due)
    for number, event in enumerate(history):
        if isinstance(event, Crossed):
            course.read(number)
            began.setdefault(event.life, course.now)
        elif isinstance(event, FaultFired):
            course.read(number)
            at = _address(event)
            places.add((began.get(event.life, course.now), at.point))
            due[course.role(at)] -= 1
    left = tuple((+due).elements())
    return replace(tread, due=left, trodden=frozenset(places), found=course.found)


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
