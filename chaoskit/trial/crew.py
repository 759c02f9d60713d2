"""The processes of a long-lived agent: kept running, each started again when it dies.

The *crew* is who works on the run: a *post* for each process that the manifest names,
and *errands*, the commands that bring something to them. All of them are lives of the
trial; a death of any of them begins the next generation (see `generations`).
"""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from chaoskit.model.history import FaultFired, LifeContinued, LifeEnded, Purpose
from chaoskit.trial.course import Step
from chaoskit.trial.generations import Generations
from chaoskit.trial.lives import Lives
from chaoskit.trial.living import Living
from chaoskit.trial.stillness import Stillness

Result = TypeVar("Result")
NEVER = float("inf")
SECONDS_BEFORE, SECONDS_BEFORE_MAX = 0.05, 1.0
"""Before one that ended by itself is started again, as a supervisor does."""
SECONDS_AT_REST = 0.5
"""So long a process that has nothing to do any more is watched before it is ended."""


class Crew:
    """Everybody who works on one run."""

    def __init__(self, lives: Lives, census: Generations, still: Stillness) -> None:
        self.deaths = 0
        self.paused = 0
        self.may_go_on = asyncio.Event()
        self._lives = lives
        self._census = census
        self._still = still
        self._lives_max = lives.plan.manifest.contract.max_lives
        self._limits = lives.plan.scenario.limits
        self._present: dict[int, Living] = {}
        self._counted: set[int] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stops = False

    @property
    def present(self) -> tuple[Living, ...]:
        """All that run, but for those that are paused."""
        return tuple(self._present.values())

    def man(self, name: str, purpose: Purpose) -> None:
        """Start a process, and start it again at each of its deaths.

        The one that is started once more after the run was done is not.
        """
        self._stops = False
        self._do(self._man(name, purpose))

    def send(self, step: Step, *, again: bool) -> asyncio.Task[bool]:
        """Run a command to its end; ``again``: until it has ended well.

        The task's result is whether it has.
        """
        return self._do(self._errand(step, again=again))

    def fault_in(self, living: Living) -> None:
        """A fault ends this life: the next generation begins."""
        if living.number >= 0 and living.number not in self._counted:
            self._counted.add(living.number)
            self._census.next()

    def raise_trouble(self) -> None:
        """Raise what a task of the crew has failed with."""
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise error

    async def stop(self) -> None:
        """Ask everybody to end, gently, and wait until they have."""
        self._stops = True
        self.may_go_on.set()
        for living in self.present:
            await self._dismiss(living)
        while any(not task.done() for task in self._tasks):
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            self.raise_trouble()
        self._tasks.clear()

    async def end(self) -> None:
        """End everybody at once; nothing of it is worth a word any more."""
        self._stops = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self._lives.end_those_left()

    def _do(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._still.stirred.set())
        return task

    async def _man(self, name: str, purpose: Purpose) -> None:
        step, ends = Step(purpose, process=name), 0
        # Beyond that the run has no end, and nobody need be started any more.
        while not self._stops and self.deaths <= self._lives_max:
            event = await self._live(step, NEVER)
            if purpose == "again":
                return
            ends = ends + 1 if event.cause == "itself" else 0
            if ends:  # it, or what it needs, may not be up yet
                await asyncio.sleep(min(SECONDS_BEFORE * 2**ends, SECONDS_BEFORE_MAX))
            step = Step("resume", process=name)

    async def _errand(self, step: Step, *, again: bool) -> bool:
        is_done = False
        while not (is_done or self._stops or self.deaths > self._lives_max):
            deadline = self._lives.patience.now() + self._limits.life_seconds
            is_done = (await self._live(step, deadline)).ending == "done"
            if not again:
                break
        return is_done

    async def _live(self, step: Step, deadline: float) -> LifeEnded:
        """One process, from its start to the last of its messages."""
        lives = self._lives
        life = lives.number(step)
        living: Living | None = None
        try:
            living = await lives.begin(life, step, deadline)
            self._present[life] = living
            if self._stops:
                await self._dismiss(living)
            ended, cause = await lives.wait(living, self._be_paused)
        finally:
            self._present.pop(life, None)
            if living is None or living.left is None:
                await lives.close(life)
        try:
            event = await lives.end(living, ended, cause)
        finally:
            living.release()
        self._count(living, event)
        return event

    def _count(self, living: Living, event: LifeEnded) -> None:
        is_over = event.ending == "done" and event.cause == "itself"
        if is_over or self._stops:
            return
        self.fault_in(living)
        self.deaths += event.cause in ("itself", "limit") and not self._struck(event)

    def _struck(self, event: LifeEnded) -> bool:
        """Whether a fault had struck it: each excuses one end."""
        fired = (e for e in self._lives.record.events if isinstance(e, FaultFired))
        return self.paused > 0 or any(e.life == event.life for e in fired)

    async def _be_paused(self, living: Living) -> None:
        """Wait until another has taken over, and go on; then it is of no more use."""
        await self._lives.read_log(living)
        self._present.pop(living.number)
        self.paused += 1
        self._still.stirred.set()
        try:
            await self.may_go_on.wait()
        finally:
            self.paused -= 1
        self._lives.record(LifeContinued(life=living.number))
        self._present[living.number] = living
        await living.go_on(self._limits.life_seconds)
        if self._stops:
            await self._dismiss(living)
        else:
            self._do(self._see_off(living))

    async def _see_off(self, living: Living) -> None:
        """Let it find out, and end it once it has nothing to do any more."""
        await self._still.settle(
            lambda: [living], SECONDS_AT_REST, self._limits.life_seconds
        )
        if living.number in self._present:
            await self._dismiss(living)

    async def _dismiss(self, living: Living) -> None:
        with suppress(ProcessLookupError):
            await living.ask_to_end(
                signal.SIGTERM, self._limits.grace_seconds, "stopped"
            )
