"""Sweep: a kill at each crossing of the fault-free run, then at each of what follows.

Depth 1 strikes at every target of the baseline. Depth n + 1 takes each trial of depth n
and strikes once more, at every crossing of the lives after its last kill.
"""

from collections.abc import Iterator

from chaoskit.explore.baseline import Baseline
from chaoskit.model.address import Address
from chaoskit.model.faults import FaultKind
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.trial import Trial
from chaoskit.model.visit import Visit, Visited


class Sweep:
    """See the module's docstring."""

    def __init__(self, faults: tuple[FaultKind, ...], depth: int) -> None:
        self.faults = faults
        self.depth = depth

    def first(self, baseline: Baseline) -> Iterator[Visit]:
        """Every fault at every target of the baseline."""
        self._baseline = baseline
        yield from self._strike(Schedule(), baseline.targets)

    def after(self, visited: Visited) -> Iterator[Visit]:
        """Every fault at every crossing after the last one that struck."""
        schedule = visited.visit.schedule
        if len(schedule) < self.depth and not visited.trial.unfired:
            targets = following(visited.trial, self._baseline)
            yield from self._strike(schedule, targets)

    def _strike(
        self, schedule: Schedule, targets: tuple[Address, ...]
    ) -> Iterator[Visit]:
        for address in targets:
            for kind in self.faults:
                yield Visit(schedule.then(Fault(kind, address)))


def following(trial: Trial, baseline: Baseline) -> tuple[Address, ...]:
    """The crossings of the lives that follow the trial's last fault."""
    last = max((f.at.life or 0 for f in trial.schedule.faults), default=-1)
    return tuple(
        address
        for address in trial.addresses
        if (address.life or 0) > last
        and (address.operation not in baseline.periodic or address.nth == 1)
    )
