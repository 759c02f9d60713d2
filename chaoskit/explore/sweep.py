"""Sweep: a fault at each crossing of the fault-free run, then at each of what follows.

Depth 1 strikes at every target of the baseline. Depth n + 1 takes each trial of depth n
and strikes once more, at every crossing after its last fault.
"""

from collections.abc import Iterator

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.strikes import Strikes
from chaoskit.model.address import Address
from chaoskit.model.history import FaultFired
from chaoskit.model.schedule import Schedule
from chaoskit.model.trial import Trial
from chaoskit.model.visit import Visit, Visited


class Sweep:
    """See the module's docstring."""

    def __init__(self, strikes: Strikes, depth: int) -> None:
        self.strikes = strikes
        self.depth = depth

    def first(self, baseline: Baseline) -> Iterator[Visit]:
        """Every fault at every target of the baseline."""
        self._baseline = baseline
        yield from self._strike(Schedule(), baseline.first, baseline.targets)

    def after(self, visited: Visited) -> Iterator[Visit]:
        """Every fault at every crossing after the last one that struck."""
        schedule = visited.visit.schedule
        if len(schedule) < self.depth and not visited.trial.unfired:
            targets = following(visited.trial, self._baseline)
            yield from self._strike(schedule, visited.trial, targets)

    def _strike(
        self, schedule: Schedule, trial: Trial, targets: tuple[Address, ...]
    ) -> Iterator[Visit]:
        for fault in self.strikes.at(trial, targets):
            yield Visit(schedule.then(fault))


def following(trial: Trial, baseline: Baseline) -> tuple[Address, ...]:
    """The crossings that come after the trial's last fault."""
    last = max((fired.seq for fired in trial.of(FaultFired)), default=-1)
    return tuple(
        crossed.at
        for crossed in trial.crossed
        if crossed.seq > last
        and (crossed.at.operation not in baseline.periodic or crossed.at.nth == 1)
    )
