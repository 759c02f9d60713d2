"""Treadmill: one run that is killed at every crossing, each life a step further.

Each life ends at its first crossing at which none has ended before; so the lives of the
one run creep on until it is over, and in the end it was killed at every crossing that
it has, those of its recoveries too. Two crossings are the same if they differ in the
life alone and the run had come equally far: asked for no further turn, and had no
further effect done.

What a life crosses depends on how those before it ended. So the schedule is found step
by step: each trial repeats the one before it and shows where the next life is to be
struck. The last of them is the treadmill whole.
"""

from collections.abc import Iterator
from dataclasses import replace

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.strikes import Strikes
from chaoskit.explore.sweep import following
from chaoskit.model.address import Address
from chaoskit.model.history import Applied, Asked, Crossed, FaultFired
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.trial import Trial
from chaoskit.model.visit import Visit, Visited

Place = tuple[Address, int, int]
"""A crossing without its life, the furthest turn until then, and the effects done."""


class Treadmill:
    """See the module's docstring."""

    def __init__(self, strikes: Strikes) -> None:
        self.strikes = strikes

    def first(self, baseline: Baseline) -> Iterator[Visit]:
        """A fault at the first crossing."""
        self._baseline = baseline
        yield from self._step(Schedule(), baseline.first, baseline.targets)

    def after(self, visited: Visited) -> Iterator[Visit]:
        """The same, and one fault more: at the first crossing that is new."""
        trial = visited.trial
        if not trial.unfired:
            new = _new(trial, following(trial, self._baseline))
            yield from self._step(visited.visit.schedule, trial, new)

    def _step(
        self, schedule: Schedule, trial: Trial, targets: tuple[Address, ...]
    ) -> Iterator[Visit]:
        fault = next(iter(self.strikes.at(trial, targets)), None)
        if fault is not None:
            yield Visit(schedule.then(fault))


def _new(trial: Trial, targets: tuple[Address, ...]) -> tuple[Address, ...]:
    """The targets at which no life has ended."""
    struck: set[Place] = set()
    places: dict[Address, Place] = {}
    turn = effects = 0
    for event in trial.history:
        match event:
            case Asked(problem=None):
                turn = max(turn, event.turn)
            case Applied(first=True):
                effects += 1
            case Crossed():
                places[event.at] = replace(event.at, life=None), turn, effects
            case FaultFired():
                place = places.get(Fault.parse(event.fault).at)
                struck |= set() if place is None else {place}
    return tuple(at for at in targets if places[at] not in struck)
