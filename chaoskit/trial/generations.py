"""The lives of addresses where an agent is many processes: the time between deaths.

Which of two workers takes a run is a race, and so is which of them sends a message. So
an address does not say who sent it, but in which *generation* it arrived: 0 until the
first death of any of the processes, then 1, and so on. That is true however the race
ended; and as with an agent that is one process, what follows a death has addresses of
its own.

It also tells news from polls: a message is news unless it has a store do again what the
same life has had it do several times before.
"""

from collections import Counter
from collections.abc import Callable

from chaoskit.model.address import Operation
from chaoskit.model.services import STORES

NEWS_MAX = 3
"""So often the same message to a store is news."""
POLLS_RECORDED_MAX = 1000
"""Between two news; more of them would only make a history long."""


class Generations:
    """A `chaoskit.gate.Census`; ``now`` is a clock in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.number = 0
        self.news_at = now()
        self._now = now
        self._seen: Counter[tuple[int, Operation]] = Counter()
        self._heard: set[int] = set()
        self._polls = 0

    def arrived(self, life: int, operation: Operation) -> tuple[int, bool]:
        """See `chaoskit.gate.Census`."""
        self._heard.add(life)
        self._seen[life, operation] += 1
        if operation.service not in STORES or self._seen[life, operation] <= NEWS_MAX:
            self.stir()
        else:
            self._polls += 1
        return self.number, self._polls > POLLS_RECORDED_MAX

    def stir(self) -> None:
        """Something new has happened."""
        self.news_at = self._now()
        self._polls = 0

    def next(self) -> None:
        """One has died: what arrives from here on is of the next generation."""
        self.number += 1
        self.stir()

    def has_heard(self, life: int) -> bool:
        """Whether a message of that life has arrived."""
        return life in self._heard
