"""Beats that were not known as such, and what could not be reached because of them.

Both clean runs may have had as many beats by chance. Then a heartbeat is struck like
any other operation, though when it comes the clock says: a later run has fewer of them,
or the same one comes after more of the work or less, and what follows is another.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from chaoskit.model.address import Operation
from chaoskit.model.history import FaultFired
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial

Moment = frozenset[str]
"""What had crossed before a fault struck."""


@dataclass
class Beats:
    """What a search has seen of operations that may be beats.

    ``idle`` change nothing after their first occurrence, ``late`` have turned out to be
    periodic.
    """

    idle: frozenset[Operation] = frozenset()
    late: set[Operation] = field(default_factory=set)
    _moments: dict[tuple[Fault, ...], Moment] = field(default_factory=dict)

    def excused(self, trial: Trial) -> frozenset[Fault]:
        """The faults that did not fire for that reason; trials come in their order."""
        faults = trial.schedule.faults
        if faults and self._may_be(faults[-1]):  # what never came, came after all else
            self._moments.setdefault(faults, _moment(trial, faults[-1]))
        missing = {fault for fault in trial.unfired if self._may_be(fault)}
        beats = [*missing, *self._moved(trial)]
        self.late |= {fault.at.operation for fault in beats}
        for moved in beats:
            behind = faults[faults.index(moved) + 1 :]
            missing |= {fault for fault in trial.unfired if fault in behind}
        return frozenset(missing)

    def _may_be(self, fault: Fault) -> bool:
        return fault.at.operation in self.idle and fault.at.nth > 1

    def _moved(self, trial: Trial) -> Iterator[Fault]:
        """The beats that were struck at another moment than in the trial before."""
        faults = trial.schedule.faults
        for length, fault in enumerate(faults, 1):
            moment = self._moments.get(faults[:length])
            if moment is not None and moment != _moment(trial, fault):
                yield fault


def _moment(trial: Trial, fault: Fault) -> Moment:
    fired = (e.seq for e in trial.of(FaultFired) if Fault.parse(e.fault) == fault)
    end = next(fired, len(trial.history))
    return frozenset(str(crossed.at) for crossed in trial.crossed if crossed.seq < end)
