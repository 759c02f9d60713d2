"""Plays a trial: one life after the other, each to the last of its messages.

The order of a kill is fixed: the gate holds the message and calls back; the group is
signalled and reaped; the dead life's sockets are dropped; messages that were past
``before`` land as late; the death is recorded with what it left behind; the next life
starts on fresh sockets. Nothing in it sleeps or reads a log in time.
"""

import asyncio
import json
from pathlib import Path

from chaoskit.agents import Exit, Launcher, Life
from chaoskit.agents.output import Output
from chaoskit.gate import BLOT, FreshNames, Gate, Recorder
from chaoskit.model.address import Address
from chaoskit.model.history import (
    Cause,
    Ending,
    FaultFired,
    LifeEnded,
    LifeStarted,
    Logged,
    RunEnded,
    Wreck,
)
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial
from chaoskit.model.visit import Visited
from chaoskit.trial.command import command
from chaoskit.trial.course import Course, Step
from chaoskit.trial.looks import Looks
from chaoskit.trial.plan import Plan
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
        self._process: Life
        self._output: Output
        self._struck: Cause | None = None
        names = self._take_up_origin()
        self._course = Course(plan.scenario, plan.manifest)
        self._looks = Looks(plan, world, record, names)
        watch = self._look if plan.watching else None
        self._gate = Gate(record, names, plan.visit.schedule, self._end_life, watch)

    def _take_up_origin(self) -> FreshNames:
        """Go on with the history of the world that this trial starts in."""
        plan, origin = self._plan, self._plan.visit.origin
        names = FreshNames(
            plan.run,
            said=json.dumps([call.args for call in plan.scenario.calls()]),
            patterns=plan.fresh,
        )
        if origin:
            names.known.update(origin.names)
            self._life = origin.life + 1
            self._record.began = origin.began
            for event in origin.prefix:
                self._record.place(event)
        return names

    async def play(self) -> Visited:
        """Life after life, until the run has ended."""
        origin = self._plan.visit.origin
        await self._world.reset(self._gate, self._plan.scenario)
        if origin:
            await self._world.restore(origin.services)
        step: Step | RunEnded = Step("resume" if origin else "start")
        while isinstance(step, Step):
            # A durable wait takes its time, and that is no race: nothing else runs.
            await asyncio.sleep(self._course.seconds_until(step))
            step = self._course.after(await self._live(step), self._record)
        if step.outcome == "done":
            step = step.model_copy(update={"answer": self._output.answer()})
            self._gate.disarm()
            await self._live(Step("again"))
        self._record(step)
        return self._result()

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
        life, self._struck = self._life, None
        self._life += 1
        self._output = self._output_of(life)
        self._record(LifeStarted(life=life, purpose=step.purpose, answer=step.answer))
        try:
            services = await self._world.open(life)
            order = command(self._plan, step, services, self._output)
            self._process = await self._launcher.start(order)
            ended, cause = await self._wait(life, self._course.seconds_for(step))
        finally:
            self._gate.close(life)
            await self._world.close(life)
        await self._gate.settled(life)
        self._read_log(life, ended=True)
        self._output.blot(CANARY, BLOT)
        event = self._ended(life, ended, cause)
        self._record(event)
        await self._look_at_wreck(event)
        return event

    def _output_of(self, life: int) -> Output:
        stem = self._folder / f"life-{life}"
        log = self._plan.manifest.log
        return Output(stem.with_suffix(".out"), stem.with_suffix(".err"), log)

    async def _wait(self, life: int, seconds: float) -> tuple[Exit, Cause]:
        """Wait for a life's end and make sure of it, whatever happens meanwhile."""
        cause: Cause = "itself"
        try:
            async with asyncio.timeout(seconds):
                await self._process.wait()
        except TimeoutError:
            self._gate.close(life)
            cause = "limit"
        finally:
            ended = await self._process.kill()
        if ended.signal is None:  # it was faster than the limit after all
            cause = "itself"
        return ended, self._struck or cause

    async def _end_life(self, life: int, cause: Cause) -> None:
        """The gate's callback: while it holds a message of that life, end it."""
        del life  # there is one at a time, and a launcher hands it over before it runs
        self._struck = cause
        await self._process.kill()

    def _ended(self, life: int, ended: Exit, cause: Cause) -> LifeEnded:
        ending: Ending = "died"
        if cause == "itself" and ended.signal is None:
            ending = self._meaning(ended.code)
        return LifeEnded(
            life=life,
            cause=cause,
            ending=ending,
            pid=self._process.pid,
            code=ended.code,
            signal=ended.signal,
            orphans=ended.orphans,
            tail=self._output.tail() if ending != "done" and cause != "fault" else (),
            output=f"{self._plan.name}/{self._output.stderr.name}",
        )

    def _meaning(self, code: int | None) -> Ending:
        exits = self._plan.manifest.exits
        if code in exits.done:
            return "done"
        if code in exits.parked:
            return "parked"
        return "failed" if code in exits.failed else "died"

    async def _look_at_wreck(self, end: LifeEnded) -> None:
        """Look after each bad end: a server that has gone is no fault of the agent."""
        if end.ending == "done":
            return
        view = await self._looks.view()
        if end.ending == "died" and self._plan.canon is not None:
            mark = self._plan.canon.of_run(self._plan.run).fingerprint(view)
            self._record(Wreck(life=end.life, state=mark))

    def _read_log(self, life: int, *, ended: bool = False) -> None:
        for line in self._output.new_log_lines(ended=ended):
            entry = {"stream": line.stream, "line": line.line, "entry": line.entry}
            self._record(Logged.model_validate({"life": life, **entry}))

    async def _look(self, address: Address) -> bool:
        """The gate's watch."""
        assert self._plan.watching is not None
        assert address.life is not None
        self._read_log(address.life)
        return await self._looks.at(address, self._plan.watching)
