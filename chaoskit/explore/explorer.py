"""What an explorer is."""

from collections.abc import Iterable
from typing import Protocol

from chaoskit.explore.baseline import Baseline
from chaoskit.model.visit import Visit, Visited


class Explorer(Protocol):
    """Decides which visits to make; pure but for what it remembers of its own."""

    def first(self, baseline: Baseline) -> Iterable[Visit]:
        """The visits that follow from the baseline."""

    def after(self, visited: Visited) -> Iterable[Visit]:
        """The visits that follow from a finished one."""
