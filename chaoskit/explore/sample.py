"""Sample: seeded random walks through the tree that a sweep would visit whole.

A walk kills at a random crossing of the baseline, then at a random crossing of the life
that followed, and so on, up to a random number of kills. Each step is a trial of its
own: only a crossing that was seen to be reached is ever scheduled. What walk n does
depends on (seed, n) and on the trials before it in the same walk, on nothing else.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.sweep import following
from chaoskit.model.address import Address
from chaoskit.model.faults import FaultKind
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.visit import Visit, Visited

KILLS_MAX = 4


@dataclass
class _Walk:
    dice: random.Random
    kills: int


class Sample:
    """See the module's docstring; ends after ``trials`` different schedules.

    Walks that take the same step share its trial, and part again where they differ.
    """

    def __init__(self, faults: tuple[FaultKind, ...], seed: int, trials: int) -> None:
        self.faults = faults
        self.seed = seed
        self.trials = trials
        self._walks: dict[Schedule, list[_Walk]] = {}

    def first(self, baseline: Baseline) -> Iterator[Visit]:
        """The first step of every walk."""
        self._baseline = baseline
        walks = [self._walk(number) for number in range(self.trials)]
        yield from self._step(walks, Schedule(), baseline.targets)

    def after(self, visited: Visited) -> Iterator[Visit]:
        """The next step of the walks that this trial belongs to."""
        schedule, trial = visited.visit.schedule, visited.trial
        walks = self._walks.get(schedule, [])
        further = [walk for walk in walks if len(schedule) < walk.kills]
        if further and not trial.unfired:
            targets = following(trial, self._baseline)
            yield from self._step(further, schedule, targets)

    def _walk(self, number: int) -> _Walk:
        dice = random.Random(f"{self.seed}:{number}")
        return _Walk(dice, dice.randint(1, KILLS_MAX))

    def _step(
        self, walks: list[_Walk], schedule: Schedule, targets: tuple[Address, ...]
    ) -> Iterator[Visit]:
        if not targets:
            return
        for walk in walks:
            fault = Fault(walk.dice.choice(self.faults), walk.dice.choice(targets))
            longer = schedule.then(fault)
            if longer in self._walks:
                self._walks[longer].append(walk)
            elif len(self._walks) < self.trials:
                self._walks[longer] = [walk]
                yield Visit(longer)
