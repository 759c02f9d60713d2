"""Replay: the schedules that somebody named, and nothing else."""

from collections.abc import Iterator

from chaoskit.explore.baseline import Baseline
from chaoskit.model.schedule import Schedule
from chaoskit.model.visit import Visit, Visited


class Replay:
    """Runs each schedule as often as asked."""

    def __init__(self, schedules: tuple[Schedule, ...], times: int = 1) -> None:
        self.schedules = schedules
        self.times = times

    def first(self, baseline: Baseline) -> Iterator[Visit]:
        """Every schedule, one after the other, the whole list `times` over."""
        for _ in range(self.times):
            yield from map(Visit, self.schedules)

    def after(self, visited: Visited) -> Iterator[Visit]:
        """Nothing follows from a replay."""
        return iter(())
