"""What a store forgot although it had acknowledged it: whose doing a step back is.

``rollback`` and ``expire`` take back what was written, and so does ``restart`` where
the scenario says that the store does not keep everything. A life that reads such a
store starts further back than the log and the model had seen, and cannot know: an older
checkpoint, a question asked again, a call made again are the store's doing. What comes
of them is not: a call that is applied twice had no key that lasts, or nobody looked.

A loss lasts until all that had been written is overwritten, which only a plain ``SET``
is sure to do: others may be refused, by a fence for example. What a later life has told
the model it has learned again. ``powerloss`` is no loss: it takes only what was not
durable, and no agent may call that its newest checkpoint.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from chaoskit.model.address import Edge, Operation
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import Asked, Crossed, FaultFired, LifeStarted
from chaoskit.model.scenario import PostgresDurability, RedisDurability, Scenario
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial

_OVERWRITES = "set"


@dataclass(frozen=True)
class Loss:
    """A fault that made a store forget.

    ``until`` is the event that made it good; from ``learned`` on a life knows all of it
    again that it has told the model.
    """

    fault: Fault
    life: int
    seq: int
    until: float
    learned: float

    def is_found_by(self, start: LifeStarted) -> bool:
        """Whether a life that starts there reads a store that has forgotten."""
        return self.seq < start.seq < self.until


class Losses(tuple[Loss, ...]):
    """All of a trial."""

    __slots__ = ()

    @classmethod
    def of(cls, trial: Trial, scenario: Scenario) -> "Losses":
        """Those that struck."""
        fired = ((event, Fault.parse(event.fault)) for event in trial.of(FaultFired))
        return cls(
            Loss(
                fault,
                event.life,
                event.seq,
                _overwritten(trial, fault, event.seq),
                _learned(trial, event),
            )
            for event, fault in fired
            if not event.idle and forgets(fault, scenario)
        )

    def found_by(self, start: LifeStarted) -> bool:
        """Whether a life does not know what an earlier one has told the model."""
        return any(
            loss.is_found_by(start) and start.seq < loss.learned for loss in self
        )

    def explain(self, trial: Trial, since: int, life: int) -> bool:
        """Whether a life may know less than one knew that is not older than ``since``.

        One that reads its store while it runs may learn of a loss at once; so may all
        that run side by side.
        """
        if trial.is_fleet:
            return bool(self)
        start = next(e for e in trial.of(LifeStarted) if e.life == life)
        return any(
            loss.is_found_by(start) or loss.life == life
            for loss in self
            if since <= loss.life <= life
        )

    def between(self, since: int, until: int) -> "Losses":
        """Those that struck after one event and before another."""
        return Losses(loss for loss in self if since < loss.seq < until)

    def before(self, seq: int) -> "Losses":
        """Those that struck before an event."""
        return Losses(loss for loss in self if loss.seq < seq)


def forgets(fault: Fault, scenario: Scenario) -> bool:
    """Whether a fault takes back what the store had acknowledged."""
    if fault.kind is FaultKind.RESTART:
        durability, service = scenario.durability, fault.at.operation.service
        keeps = {
            "redis": durability.redis is RedisDurability.ALWAYS,
            "postgres": durability.postgres is PostgresDurability.ON,
        }
        return not keeps.get(service, True)
    return fault.kind in (FaultKind.ROLLBACK, FaultKind.EXPIRE)


def _overwritten(trial: Trial, fault: Fault, seq: int) -> float:
    """The event by which all that may have been forgotten was written again."""
    writes = tuple(_writes(trial, fault))
    missing = {operation for at, operation in writes if at < seq}
    if any(operation.op != _OVERWRITES for operation in missing):
        return inf
    for at, operation in writes:
        if at > seq:
            missing.discard(operation)
            if not missing:
                return at
    return inf


def _learned(trial: Trial, fired: FaultFired) -> float:
    asked = (e for e in trial.of(Asked) if e.seq > fired.seq and e.life > fired.life)
    return next((e.seq for e in asked), inf)


def _writes(trial: Trial, fault: Fault) -> Iterator[tuple[int, Operation]]:
    """What was applied of that which the fault can take back.

    What only reads is no crossing there, or is taken for a write: then the loss counts
    as one that lasts.
    """
    struck = fault.at.operation
    key = fault.argument or struck.key
    for crossed in trial.of(Crossed):
        at = crossed.at
        is_same = at.operation.service == struck.service and at.edge == Edge.AFTER
        if is_same and (fault.kind is not FaultKind.EXPIRE or at.operation.key == key):
            yield crossed.seq, at.operation
