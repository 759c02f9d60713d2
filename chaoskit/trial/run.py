"""Plays a trial: one life after the other, each to the last of its messages.

The order of a kill is fixed: the gate holds the message and calls back; the group is
signalled and reaped; the dead life's sockets are dropped; messages that were past
``before`` land as late; the death is recorded with what it left behind; the next life
starts on fresh sockets. Nothing in it sleeps or reads a log in time.

A *line* is lives that follow one another. A ``pause`` opens a second one, which decides
how the run ends; the life that was paused goes on when that line has ended or parked.
"""

import asyncio
import json
from pathlib import Path

from chaoskit.agents import Command, Exit, Launcher
from chaoskit.agents.output import Output
from chaoskit.gate import BLOT, FreshNames, Gate, Recorder
from chaoskit.model.address import Address
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import (
    Cause,
    FaultFired,
    LifeContinued,
    LifeEnded,
    LifeStarted,
    RunEnded,
)
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial
from chaoskit.model.visit import Visited
from chaoskit.trial.account import Account
from chaoskit.trial.command import command
from chaoskit.trial.company import Company
from chaoskit.trial.course import Course, Step
from chaoskit.trial.living import Living, News
from chaoskit.trial.looks import Looks
from chaoskit.trial.patience import Patience
from chaoskit.trial.plan import Plan
from chaoskit.trial.strikes import Strikes, skews
from chaoskit.world import World
from chaoskit.world.llm import CANARY


class Run:
    """One trial; `play` it once."""

    def __init__(
        self,
        plan: Plan,
        world: World,
        launcher: Launcher,
        folder: Path,
        record: Recorder,
    ) -> None:
        self._plan = plan
        self._world = world
        self._launcher = launcher
        self._folder = folder
        self._record = record
        self._life = 0
        self._company = Company()
        self._outputs: dict[int, Output] = {}
        self._decided: dict[int, Step | RunEnded] = {}
        self._clock = launcher.clock() if skews(plan.visit.schedule) else None
        names = self._take_up_origin()
        self._patience = Patience()
        self._course = Course(plan.scenario, plan.manifest, self._patience)
        self._looks = Looks(plan, world, record, names)
        self._account = Account(plan, record, self._looks)
        self._gate = self._gate_with(names)

    def _take_up_origin(self) -> FreshNames:
        """Go on with the history of the world that this trial starts in."""
        plan, origin = self._plan, self._plan.visit.origin
        names = FreshNames(
            plan.run,
            said=json.dumps([call.all_args for call in plan.scenario.calls()]),
            patterns=plan.fresh,
        )
        if origin:
            names.known.update(origin.names)
            self._life = origin.life + 1
            self._record.began = origin.began
            for event in origin.prefix:
                self._record.place(event)
        return names

    def _gate_with(self, names: FreshNames) -> Gate:
        plan = self._plan
        grace = plan.scenario.limits.grace_seconds
        return Gate(
            self._record,
            names,
            plan.visit.schedule,
            self._end_life,
            self._look if plan.watching else None,
            Strikes(self._company, self._world, grace, self._clock),
            self._company,
        )

    async def play(self) -> Visited:
        """Life after life, until the run has ended."""
        origin = self._plan.visit.origin
        await self._world.reset(self._gate, self._plan.scenario)
        if origin:
            await self._world.restore(origin.services)
            last = origin.path.faults[-1]
            if last.kind is FaultKind.POWERLOSS:
                await self._world.lose_power(last.chosen)
        if self._clock is not None:
            self._clock.set(0)
        try:
            end = await self._play_on(Step("resume" if origin else "start"))
            assert isinstance(end, RunEnded), "only a second line rests"
            if end.outcome == "done":
                end = end.model_copy(update={"answer": self._answer(end.life)})
                self._gate.disarm()
                await self._live(Step("again"))
        finally:
            await self._end_those_left()
        self._record(end)
        return self._result()

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

    def _answer(self, life: int) -> str | None:
        return self._outputs[life].answer()

    def _result(self) -> Visited:
        plan = self._plan
        unfired = tuple(f for f in self._gate.unfired if not self._fired_anywhere(f))
        history = tuple(self._record.events)
        trial = Trial(plan.name, plan.run, plan.path, history, unfired)
        return Visited(plan.visit, trial, self._looks.kept)

    def _fired_anywhere(self, fault: Fault) -> bool:
        fired = (e.fault for e in self._record.events if isinstance(e, FaultFired))
        return fault.at.life is None and str(fault) in fired

    async def _live(self, step: Step) -> LifeEnded:
        """One life, from its first process to the last of its messages."""
        life = self._life
        self._life += 1
        self._record(LifeStarted(life=life, purpose=step.purpose, answer=step.answer))
        living: Living | None = None
        try:
            living = await self._begin(life, step)
            ended, cause = await self._wait(living)
        finally:
            if living is None or living.left is None:
                await self._close(life)
        try:
            return await self._end(living, ended, cause)
        finally:
            living.release()

    async def _begin(self, life: int, step: Step) -> Living:
        services = await self._world.open(life)
        output = self._outputs[life] = self._output_of(life)
        process = await self._launcher.start(self._order(life, step, services))
        deadline = self._course.deadline_for(step)
        living = Living(life, process, output, deadline, self._patience)
        self._company.add(living)
        return living

    def _order(self, life: int, step: Step, services: dict[str, str]) -> Command:
        return command(
            self._plan,
            step,
            services,
            self._outputs[life],
            inherit=self._world.inherited(life),
            clock=self._clock is not None,
        )

    def _output_of(self, life: int) -> Output:
        stem = self._folder / f"life-{life}"
        log = self._plan.manifest.log
        return Output(stem.with_suffix(".out"), stem.with_suffix(".err"), log)

    async def _wait(self, living: Living) -> tuple[Exit, Cause]:
        """Wait for a life's end and make sure of it, whatever happens meanwhile."""
        cause: Cause = "itself"
        try:
            while (news := await living.news()) is News.PAUSED:
                await self._take_over(living)
            if news is News.OUT_OF_TIME:
                self._gate.close(living.number)
                cause = "limit"
        finally:
            ended = living.left or await living.process.kill()
            if living.left is None:
                living.release()
        if ended.signal is None:  # it was faster than the limit after all
            cause = "itself"
        return ended, living.struck or cause

    async def _take_over(self, first: Living) -> None:
        """Have another line go on with the run while a life is paused."""
        await self._read_log(first)
        with self._course.on_trial():
            line = await self._play_on(Step("resume"), rests=True)
        self._decided[first.number] = line
        self._record(LifeContinued(life=first.number))
        await first.go_on(self._plan.scenario.limits.life_seconds)

    async def _end_life(self, life: int, cause: Cause) -> None:
        """The gate's callback: while it holds a message of that life, end it."""
        living = self._company.get(life)
        if living is not None:  # else it was faster, and has ended by itself
            living.struck = cause
            await living.process.kill()

    async def _close(self, life: int) -> None:
        self._company.remove(life)
        self._gate.close(life)
        await self._world.close(life)

    async def _end(self, living: Living, ended: Exit, cause: Cause) -> LifeEnded:
        """Take in what a life has left, and record its end."""
        if living.left is None:
            await self._settle(living)
        else:
            await self._read_log(living)
        with self._patience.held():
            return await self._account.end(living, ended, cause)

    async def _settle(self, living: Living) -> None:
        await self._gate.settled(living.number)
        self._account.read_log(living.number, living.output, ended=True)
        living.output.blot(CANARY, BLOT)

    async def _end_those_left(self) -> None:
        """The children of lives whose first process was killed alone."""
        for living in self._company.left:
            await living.process.kill()
            await self._close(living.number)
            await self._settle(living)

    async def _look(self, address: Address) -> bool:
        """The gate's watch."""
        assert self._plan.watching is not None
        assert address.life is not None
        with self._patience.held():
            if (living := self._company.get(address.life)) is not None:
                await self._read_log(living)
            return await self._looks.at(address, self._plan.watching)

    async def _read_log(self, living: Living) -> None:
        """What a life that still runs, or is stopped, has written until now."""
        await living.process.written()
        self._account.read_log(living.number, living.output)


def _is_idle(decided: Step | RunEnded) -> bool:
    """Whether a line of lives left the run where it was."""
    return isinstance(decided, RunEnded) and decided.outcome in ("endless", "parked")
