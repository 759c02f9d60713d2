"""Calls that land after another life has taken over, and that nobody could call back.

A life that was paused goes on where it was: what it had sent is delivered, and what it
was about to send it sends, until its store tells it that another goes on with the run.
A message that the network has delayed lands in the same way. A key makes all of them
harmless. Where a tool has none, whoever looks up what was done cannot see what has yet
to land.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from chaoskit.checks.held import Held
from chaoskit.model.address import Edge, Operation
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import (
    Asked,
    Crossed,
    Delivered,
    FaultFired,
    LifeContinued,
    LifeEnded,
    LifeStarted,
    StatusSeen,
)
from chaoskit.model.schedule import Fault
from chaoskit.model.services import STORES
from chaoskit.model.trial import Trial

_HOLDS = (FaultKind.PAUSE, FaultKind.DELAY)


@dataclass(frozen=True)
class Stray:
    """A delivery that could not be called back, and the event from which on."""

    delivery: Delivered
    since: int


def blocked(trial: Trial) -> str:
    """Why a pause put no takeover to the test, or nothing.

    So it is where all who were to take over died: they may wait for what the paused
    life holds, a lock of a file or of a row.
    """
    if trial.is_fleet:
        return _nobody_took_over(trial)
    died = {end.life for end in trial.of(LifeEnded) if end.ending == "died"}
    began: list[int] | None = None
    for event in trial.history:
        match event:
            case FaultFired() if Fault.parse(event.fault).kind is FaultKind.PAUSE:
                began = []
            case LifeStarted() if began is not None:
                began.append(event.life)
            case LifeContinued():
                if began and all(life in died for life in began):
                    return _BLOCKED
                began = None
    return ""


def _nobody_took_over(trial: Trial) -> str:
    """The same where others are there all the time: they had the run end, or park."""
    paused = False
    for event in trial.history:
        match event:
            case FaultFired() if Fault.parse(event.fault).kind is FaultKind.PAUSE:
                paused = True
            case StatusSeen(status="done" | "failed" | "parked"):
                paused = False
            case LifeContinued() if paused:
                return _NOBODY
    return ""


_NOBODY = (
    "where a process was paused, no other had the run end or park: it may wait for "
    "what the paused one holds; those pauses put no takeover to the test"
)
_BLOCKED = (
    "where a life was paused, none that was to take over came to an end: it may wait "
    "for a lock that the paused one holds; those pauses put no takeover to the test"
)


def strays(trial: Trial) -> tuple[Stray, ...]:
    """All of a trial, in order."""
    return tuple(_Strays().of(trial))


def sent_unaware(trial: Trial) -> frozenset[int]:
    """The deliveries, by ``seq``, of lives that could not know that one took over."""
    found = strays(trial)
    return frozenset(s.delivery.seq for s in found if s.since < s.delivery.seq)


@dataclass
class _Strays:
    """Which lives cannot know yet, and what each of them has sent last."""

    unaware: dict[int, int] = field(default_factory=dict)
    held: Held = field(default_factory=Held)

    def of(self, trial: Trial) -> Iterator[Stray]:
        paused: dict[int, int] = {}
        heard = heard_from_store(trial)
        for event in trial.history:
            match event:
                case FaultFired():
                    paused[event.life] = event.seq
                    yield from self._held(event)
                case LifeContinued():
                    self.unaware[event.life] = paused.get(event.life, event.seq)
                case Delivered(duplicate=False):
                    self.held.see(event)
                    if event.life in self.unaware:
                        yield Stray(event, self.unaware[event.life])
                case Asked() | Crossed() if _tells(event, heard):
                    self.unaware.pop(event.life, None)

    def _held(self, fired: FaultFired) -> Iterator[Stray]:
        fault = Fault.parse(fired.fault)
        held = self.held.by(fired)
        if fault.kind in _HOLDS and fault.at.edge == Edge.BEFORE and held is not None:
            yield Stray(held, fired.seq)


def _tells(event: Asked | Crossed, heard: frozenset[int]) -> bool:
    """Whether a life has had to do with its store, or with the model.

    Whoever asks the model without a look at its store does not want to know.
    """
    return isinstance(event, Asked) or event.seq in heard


def heard_from_store(trial: Trial) -> frozenset[int]:
    """The crossings, by ``seq``, with which a life has had to do with its store.

    A request tells it nothing before it is answered, and one may be on its way while
    another thread of the agent goes on. What has changed nothing in a store may have no
    ``after`` (see `Gate.has_applied`): of that the request counts.
    """
    heard: set[int] = set()
    later: dict[tuple[int, Operation, int], Edge] = {}
    for crossed in reversed(tuple(trial.of(Crossed))):
        at = crossed.at
        if at.operation.service in STORES:
            message = crossed.life, at.operation, at.nth
            is_answered_later = later.get(message, Edge.BEFORE) != Edge.BEFORE
            if at.edge != Edge.BEFORE or not is_answered_later:
                heard.add(crossed.seq)
            later[message] = at.edge
    return frozenset(heard)
