"""Plays a trial: one life after the other, each to the last of its messages.

The order of a kill is fixed: the gate holds the message and calls back; the group is
signalled and reaped; the dead life's sockets are dropped; messages that were past
``before`` land as late; the death is recorded with what it left behind; the next life
starts on fresh sockets. Nothing in it sleeps or reads a log in time.

A *line* is lives that follow one another. A ``pause`` opens a second one, which decides
how the run ends; the life that was paused goes on when that line has ended or parked.
"""

import asyncio
from pathlib import Path

from chaoskit.agents import Launcher
from chaoskit.gate import Recorder
from chaoskit.model.history import LifeContinued, LifeEnded, RunEnded
from chaoskit.model.visit import Visited
from chaoskit.trial.course import Course, Step
from chaoskit.trial.inspection import Inspection
from chaoskit.trial.lives import Lives
from chaoskit.trial.living import Living
from chaoskit.trial.own_command import OwnCommands
from chaoskit.trial.plan import Plan
from chaoskit.world import World


class Run:
    """One trial of an agent that is started for each run; `play` it once."""

    def __init__(
        self,
        plan: Plan,
        world: World,
        launcher: Launcher,
        folder: Path,
        record: Recorder,
    ) -> None:
        self._plan = plan
        self._record = record
        self._lives = Lives(plan, world, launcher, folder, record)
        self._course = Course(
            plan.scenario,
            plan.manifest,
            self._lives.patience,
            unending=any(fault.at.life is None for fault in plan.path.faults),
        )
        self._inspection = Inspection(self._lives, OwnCommands(self._lives))
        self._decided: dict[int, Step | RunEnded] = {}

    async def play(self) -> Visited:
        """Life after life, until the run has ended."""
        await self._lives.prepare()
        origin = self._plan.visit.origin
        try:
            if origin:
                await self._inspection.look("death", origin.life)
            end = await self._play_on(Step("resume" if origin else "start"))
            assert isinstance(end, RunEnded), "only a second line rests"
            if end.outcome == "done":
                answer = self._lives.outputs[end.life].answer()
                end = end.model_copy(update={"answer": answer})
                self._lives.gate.disarm()
                await self._live(Step("again"))
            if end.outcome != "cut":
                await self._inspection.look("end", self._lives.newest)
        finally:
            await self._lives.end_those_left()
        await self._lives.last_look(end)
        return self._lives.result(end)

    async def _play_on(
        self, step: Step | RunEnded, *, rests: bool = False
    ) -> Step | RunEnded:
        """A line of lives, to its end or, where it rests, to where one parks."""
        while isinstance(step, Step):
            # A durable wait takes its time, and that is no race: nothing else runs.
            await asyncio.sleep(self._course.seconds_until(step))
            event = await self._live(step)
            step = self._after(event)
            if rests and event.ending == "parked":
                break
        return step

    def _after(self, event: LifeEnded) -> Step | RunEnded:
        """What follows a life; what another line decided, where one took over.

        One that came to nothing, since the life that was paused still held the run,
        decides nothing.
        """
        decided = self._decided.pop(event.life, None)
        if decided is None or _is_idle(decided):
            return self._course.after(event, self._record)
        return decided

    async def _live(self, step: Step) -> LifeEnded:
        """One life, from its first process to the last of its messages."""
        lives = self._lives
        life = lives.number(step)
        living: Living | None = None
        try:
            living = await lives.begin(life, step, self._course.deadline_for(step))
            ended, cause = await lives.wait(living, self._take_over)
        finally:
            if living is None or living.left is None:
                await lives.close(life)
        try:
            event = await lives.end(living, ended, cause)
        finally:  # before anybody looks: the fault that waits holds the door
            living.release()
        await self._inspect_after(event)
        return event

    async def _inspect_after(self, end: LifeEnded) -> None:
        """Before the next life can heal anything."""
        if end.ending == "died":
            await self._inspection.look("death", end.life)
        elif end.ending == "parked":
            await self._inspection.look("rest", end.life)

    async def _take_over(self, first: Living) -> None:
        """Have another line go on with the run while a life is paused."""
        await self._lives.read_log(first)
        with self._course.on_trial():
            line = await self._play_on(Step("resume"), rests=True)
        self._decided[first.number] = line
        await self._inspection.look("rest", self._lives.newest)
        self._record(LifeContinued(life=first.number))
        await first.go_on(self._plan.scenario.limits.life_seconds)


def _is_idle(decided: Step | RunEnded) -> bool:
    """Whether a line of lives left the run where it was."""
    return isinstance(decided, RunEnded) and decided.outcome in ("endless", "parked")
