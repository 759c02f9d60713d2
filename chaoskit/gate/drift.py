"""Whether the machine's clock was set, or the machine itself stood still.

A trial is timed by a clock that only goes on. Agents keep their times by the one that
tells the time of day: it is set by hand or by a time service, and leaps where a virtual
machine was moved or a laptop slept. From then on the two do not agree, and what rests
on times says nothing of the agent.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

LEAP_SECONDS_MIN = 0.02
"""Below, a clock may have been slewed: it goes a little faster or slower meanwhile."""

Look = tuple[float, float, float]
"""The time of day, and the time that only goes on right before and right after."""


def look() -> Look:
    """Read both clocks; a process may be held up between any two of its steps."""
    before, today, after = time.monotonic(), time.time(), time.monotonic()
    return today, before, after


@dataclass
class Drift:
    """Watches the two clocks from when it is made."""

    look: Callable[[], Look] = look
    _ahead: float = field(init=False)

    def __post_init__(self) -> None:
        self._ahead = self._range()[0]

    def leap(self) -> float:
        """By how much the time of day has leapt since it was last asked; 0.0 for not.

        Only what is certain counts, however long it took to read the clocks.
        """
        least, most = self._range()
        nearest = min(max(self._ahead, least), most)
        leap = nearest - self._ahead
        if abs(leap) < LEAP_SECONDS_MIN:
            return 0.0
        self._ahead = nearest
        return leap

    def _range(self) -> tuple[float, float]:
        today, before, after = self.look()
        return today - after, today - before
