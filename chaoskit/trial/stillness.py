"""Whether lives are at rest: no news of them, nothing at the gate, no work to do.

A process that starts, or starves on a busy machine, is at work; one that waits for its
next poll is not, though it works for a moment at each. So it is looked at repeatedly.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress

from chaoskit.agents.linux import is_at_work
from chaoskit.gate import Gate
from chaoskit.trial.generations import Generations
from chaoskit.trial.living import Living

SECONDS_A_LOOK = 0.05
_SHARE_AT_WORK_MAX = 0.5


class Stillness:
    """Watches the lives of one trial."""

    def __init__(
        self, gate: Gate, census: Generations, now: Callable[[], float]
    ) -> None:
        self._gate = gate
        self._census = census
        self._now = now
        self.stirred = asyncio.Event()

    async def tick(self) -> None:
        """Wait a moment, or until somebody says that something has happened."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS_A_LOOK):
                await self.stirred.wait()
        self.stirred.clear()

    async def settle(
        self, lives: Callable[[], Iterable[Living]], seconds: float, limit: float
    ) -> bool:
        """Wait until they have been at rest for so long; False at the limit."""
        began = since = self._now()
        looks, at_work = 0, Counter[int]()
        while (now := self._now()) - since < seconds:
            if now - began >= limit:
                return False
            await self.tick()
            looks += 1
            at_work.update(each.number for each in lives() if self._is_at_work(each))
            if self._census.news_at > since or any(
                count > looks * _SHARE_AT_WORK_MAX for count in at_work.values()
            ):
                since, looks, at_work = self._now(), 0, Counter()
        return True

    def _is_at_work(self, living: Living) -> bool:
        busy = self._gate.is_busy(living.number)
        return busy or any(map(is_at_work, living.process.pids()))
