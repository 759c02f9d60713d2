"""One life in play: its process, its time, and what faults do to it meanwhile."""

import asyncio
from dataclasses import dataclass, field
from enum import Enum, auto

from chaoskit.agents import Exit, Life
from chaoskit.agents.output import Output
from chaoskit.model.history import Cause
from chaoskit.trial.course import Step
from chaoskit.trial.patience import Patience

SECONDS_BETWEEN_CHECKS_MIN = 0.01
"""A held clock leaves as little as it likes, and is not to be asked all the time."""


class News(Enum):
    """Why somebody must look after a life."""

    ENDED = auto()
    """Nothing of it is alive."""
    OUT_OF_TIME = auto()
    """Its time is up, or its grace, and it still runs."""
    LEFT = auto()
    """Its first process was killed alone; its children may go on."""
    PAUSED = auto()
    """It is stopped, and another is to take over."""


@dataclass(eq=False)
class Living:
    """A life from its start to its end, or to the trial's where its children go on.

    ``deadline`` is on the clock of ``patience``; ``step`` is what it was started for.
    ``struck`` is what a fault did to it;
    ``left`` the exit of a first process that was killed alone. A fault that waits for
    the trial to look after the life waits until it is ``released``.
    """

    number: int
    process: Life
    output: Output
    deadline: float
    patience: Patience
    step: Step
    struck: Cause | None = None
    left: Exit | None = None
    released: asyncio.Event = field(default_factory=asyncio.Event)
    _told: asyncio.Event = field(default_factory=asyncio.Event)
    _paused: bool = False
    _trouble: Exception | None = None

    async def news(self) -> News:
        """Wait until there is something to see to.

        Raises what `fail` was told.
        """
        ending = asyncio.ensure_future(self.process.wait())
        told = asyncio.ensure_future(self._told.wait())
        try:
            while True:
                left = self.deadline - self.patience.now()
                await asyncio.wait(
                    (ending, told),
                    timeout=max(SECONDS_BETWEEN_CHECKS_MIN, left),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if (news := self._read(ended=ending.done())) is not None:
                    return news
                if told.done():
                    self._told.clear()
                    told = asyncio.ensure_future(self._told.wait())
        finally:
            ending.cancel()
            told.cancel()

    def _read(self, *, ended: bool) -> News | None:
        if self._trouble is not None:
            raise self._trouble
        if self.left is not None:
            return News.LEFT
        if ended:
            return News.ENDED
        if self._paused:
            self._paused = False
            return News.PAUSED
        is_over = self.patience.now() >= self.deadline
        return News.OUT_OF_TIME if is_over else None

    async def ask_to_end(
        self, number: int, grace: float, cause: Cause = "asked"
    ) -> None:
        """Signal the group; what still runs after its grace is out of time."""
        self.struck = cause
        await self.process.signal(number)
        self.deadline = min(self.deadline, self.patience.now() + grace)
        self._told.set()

    async def leave_children(self) -> None:
        """Kill the first process alone, and wait until its death is recorded."""
        self.struck = "fault"
        self.left = await self.process.kill_one()
        await self._tell()

    async def pause(self) -> None:
        """Stop it, and wait until it may go on."""
        await self.process.pause()
        self._paused = True
        await self._tell()

    async def go_on(self, seconds: float) -> None:
        """Let it run on, for at most so long, once the fault has let go of it."""
        self.deadline = self.patience.now() + seconds
        await self.process.go_on()
        self.release()

    def fail(self, trouble: Exception) -> None:
        """What must end the trial, told by a fault that could not be done."""
        self._trouble = trouble
        self._told.set()

    def release(self) -> None:
        """Let go the fault that waits."""
        self.released.set()

    async def _tell(self) -> None:
        self.released.clear()
        self._told.set()
        await self.released.wait()
