"""Sample: seeded random walks through the tree that a sweep would visit whole.

A walk strikes at a random crossing of the baseline, then at a random crossing of what
followed, and so on, up to a random number of faults. Each step is a trial of its
own: only a crossing that was seen to be reached is ever scheduled. What walk n does
depends on (seed, n) and on the trials before it in the same walk, on nothing else.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.strikes import Strikes
from chaoskit.explore.sweep import following
from chaoskit.model.address import Address
from chaoskit.model.schedule import Schedule
from chaoskit.model.trial import Trial
from chaoskit.model.visit import Visit, Visited

FAULTS_MAX = 4


@dataclass
class _Walk:
    dice: random.Random
    faults: int


class Sample:
    """See the module's docstring; ends after ``trials`` different schedules.

    Walks that take the same step share its trial, and part again where they differ.
    """

    def __init__(self, strikes: Strikes, seed: int, trials: int) -> None:
        self.strikes = strikes
        self.seed = seed
        self.trials = trials
        self._walks: dict[Schedule, list[_Walk]] = {}

    def first(self, baseline: Baseline) -> Iterator[Visit]:
        """The first step of every walk."""
        self._baseline = baseline
        walks = [self._walk(number) for number in range(self.trials)]
        yield from self._step(walks, Schedule(), baseline.first, baseline.targets)

    def after(self, visited: Visited) -> Iterator[Visit]:
        """The next step of the walks that this trial belongs to."""
        schedule, trial = visited.visit.schedule, visited.trial
        walks = self._walks.get(schedule, [])
        further = [walk for walk in walks if len(schedule) < walk.faults]
        if further and not trial.unfired:
            targets = following(trial, self._baseline)
            yield from self._step(further, schedule, trial, targets)

    def _walk(self, number: int) -> _Walk:
        dice = random.Random(f"{self.seed}:{number}")
        return _Walk(dice, dice.randint(1, FAULTS_MAX))

    def _step(
        self,
        walks: list[_Walk],
        schedule: Schedule,
        trial: Trial,
        targets: tuple[Address, ...],
    ) -> Iterator[Visit]:
        faults = tuple(self.strikes.at(trial, targets))
        if not faults:
            return
        for walk in walks:
            longer = schedule.then(walk.dice.choice(faults))
            if longer in self._walks:
                self._walks[longer].append(walk)
            elif len(self._walks) < self.trials:
                self._walks[longer] = [walk]
                yield Visit(longer)
