"""Where each life of a treadmill ends: at the first crossing that is new to the run.

A place is a crossing (operation, number in its life, edge) together with what the run
had achieved when that life began: which effects were applied (once, or more often),
which results the model had been told, which answers were brought. So a life that begins
after some progress is ended at its first crossing again, in what has become of the
world; and nothing that a store holds makes a place new, so that an agent which counts
its lives there is ended no more often than another.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from chaoskit.model.address import Address
from chaoskit.model.calls import identity
from chaoskit.model.history import Applied, Asked, Event, LifeStarted
from chaoskit.model.schedule import Fault
from chaoskit.model.visit import Tread

KILLS_MAX = 2000
"""So many kills one run is given; an agent that does not move on has had enough."""
TIMES_TOLD_APART_MAX = 2
"""That a call was applied again is news; that it was a third time is none."""

Fact = tuple[object, ...]


@dataclass
class Progress:
    """What a run has achieved, read off a history that may still grow."""

    events: Sequence[Event]
    facts: set[Fact] = field(default_factory=set)
    told: set[str] = field(default_factory=set)
    _read: int = 0
    _applied: Counter[Fact] = field(default_factory=Counter)

    def read(self, end: int | None = None) -> None:
        """Take in what has happened since the last time, or up to an event."""
        end = len(self.events) if end is None else end
        for event in self.events[self._read : end]:
            self._take(event)
        self._read = max(self._read, end)

    def _take(self, event: Event) -> None:
        if isinstance(event, Applied) and event.first:
            call = identity(event)
            self._applied[call] += 1
            times = min(self._applied[call], TIMES_TOLD_APART_MAX)
            self.facts.add(("applied", *call, times))
        elif isinstance(event, Asked):
            self.told.update(event.carried)
            self.facts.update(("told", each) for each in event.carried)
        elif isinstance(event, LifeStarted) and event.answer is not None:
            self.facts.add(("answered", event.answer))


class Steps:
    """Decides, while one trial runs, where each of its lives ends."""

    def __init__(self, tread: Tread, events: Sequence[Event]) -> None:
        self._tread = tread
        self._progress = Progress(events)
        self._began_with: dict[int | None, int] = {}
        self._trodden: set[tuple[int, str]] = set()

    def __call__(self, address: Address) -> Fault | None:
        """The fault that strikes at a crossing that has come up, if one does."""
        place = self._achieved(address.life), address.point
        is_beat = address.nth > 1 and address.operation in self._tread.periodic
        if is_beat or place in self._trodden or len(self._trodden) == KILLS_MAX:
            return None
        self._trodden.add(place)
        kind, argument = self._tread.fault
        return Fault(kind, address, argument)

    def _achieved(self, life: int | None) -> int:
        """How much had been achieved when a life was first heard of.

        Facts are only ever added, so their number tells which there are.
        """
        self._progress.read()
        return self._began_with.setdefault(life, len(self._progress.facts))
