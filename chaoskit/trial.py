"""One schedule, one trial: lives are started, struck and started again, to the end.

The order of a kill is fixed: the gate holds the message and calls back; the group is
signalled and reaped; the dead life's sockets are dropped; messages that were past
``before`` land as late; the death is recorded with what it left behind; the next life
starts on fresh sockets. Nothing in it sleeps or reads a log in time.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chaoskit.agents import Command, Exit, Launcher, Life
from chaoskit.agents.output import Output
from chaoskit.explore.fingerprint import Canon
from chaoskit.explore.memory import remembered
from chaoskit.gate import BLOT, FreshNames, Gate, Recorder
from chaoskit.model.address import Address
from chaoskit.model.commands import fill, fill_text
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import (
    Asked,
    Cause,
    Ending,
    Event,
    FaultFired,
    LifeEnded,
    LifeStarted,
    Logged,
    Purpose,
    RunEnded,
    Wreck,
)
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import AskTurn, Scenario, WaitTurn
from chaoskit.model.schedule import Fault
from chaoskit.model.state import View, WorldState
from chaoskit.model.trial import SIGKILL, Trial
from chaoskit.model.visit import Look, Visit, Visited
from chaoskit.model.waiting import open_turn
from chaoskit.world import World
from chaoskit.world.llm import CANARY

SECONDS_BETWEEN_RESUMES = 1.0


@dataclass(frozen=True)
class Watching:
    """What to make of the worlds that a trial passes.

    Without a ``canon`` every look is kept (a baseline, from which one is learned);
    with one, only worlds not in ``known``, and a recovery ends at a known one unless
    ``thorough``. ``snapshots``: keep the worlds whole, not just a view of them.
    """

    canon: Canon | None = None
    known: frozenset[str] = frozenset()
    snapshots: bool = False
    thorough: bool = False


@dataclass(frozen=True)
class Plan:
    """Everything that one trial needs to know."""

    name: str
    visit: Visit
    scenario: Scenario
    manifest: Manifest
    agent_folder: Path
    run_id: str
    canon: Canon | None = None
    watching: Watching | None = None
    fresh: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Step:
    """How the run goes on: which command, when, with which answer."""

    purpose: Purpose
    at: float = 0.0
    answer: str | None = None


async def run_trial(
    plan: Plan, world: World, launcher: Launcher, folder: Path
) -> Visited:
    """Run one trial to its end; its history and output go to ``folder``."""
    folder.mkdir(parents=True)
    (folder / "schedule.txt").write_text(f"{plan.visit.schedule}\n")
    with (folder / "history.jsonl").open("w", 1, encoding="utf-8") as sink:
        record = Recorder(sink, secret=CANARY)
        return await _Run(plan, world, launcher, folder, record).play()


class _Run:
    def __init__(
        self,
        plan: Plan,
        world: World,
        launcher: Launcher,
        folder: Path,
        record: Recorder,
    ) -> None:
        self.plan = plan
        self.world = world
        self.launcher = launcher
        self.folder = folder
        self.record = record
        origin = plan.visit.origin
        self.run_id = origin.run_id if origin else plan.run_id
        self.life = origin.life + 1 if origin else 0
        self.deaths = 0
        self.deadline = time.monotonic() + plan.scenario.limits.trial_seconds
        self.process: asyncio.Future[Life]
        self.causes: dict[int, Cause] = {}
        self.output: Output
        self.looks: dict[str, Look] = {}
        self.passed: set[str] = set()
        watch = None if plan.watching is None else self._look
        names = FreshNames(
            self.run_id,
            dict(origin.names) if origin else {},
            said=json.dumps([call.args for call in plan.scenario.calls()]),
            patterns=plan.fresh,
        )
        if origin:
            self._take_up(origin)
        self.gate = Gate(record, names, plan.visit.schedule, self._end_life, watch)

    def _take_up(self, origin: WorldState) -> None:
        """Go on with the history of the world that this trial starts in."""
        self.record.began = origin.began
        for event in origin.prefix:
            self.record.place(event)

    async def play(self) -> Visited:
        """Life after life, until the run has ended."""
        origin = self.plan.visit.origin
        await self.world.reset(self.gate, self.plan.scenario)
        if origin:
            await self.world.restore(origin.services)
        step: _Step | RunEnded = _Step("resume" if origin else "start")
        while isinstance(step, _Step):
            await self._until(step.at)
            step = self._next(await self._live(step))
        if step.outcome == "done":
            self.gate.disarm()
            await self._live(_Step("again"))
        self.record(step)
        return self._result()

    def _result(self) -> Visited:
        schedule = self.plan.visit.schedule
        origin = self.plan.visit.origin
        trial = Trial(
            self.plan.name,
            self.run_id,
            origin.path if origin else schedule,
            tuple(self.record.events),
            tuple(f for f in self.gate.unfired if not self._fired_anywhere(f)),
        )
        return Visited(self.plan.visit, trial, tuple(self.looks.values()))

    def _fired_anywhere(self, fault: Fault) -> bool:
        fired = (e.fault for e in self.record.events if isinstance(e, FaultFired))
        return fault.at.life is None and str(fault) in fired

    async def _live(self, step: _Step) -> LifeEnded:
        """One life, from its first process to the last of its messages."""
        life = self.life
        self.process = asyncio.get_running_loop().create_future()
        self.record(LifeStarted(life=life, purpose=step.purpose, answer=step.answer))
        environment = await self.world.open(life)
        try:
            process = await self.launcher.start(self._command(step, environment))
            self.process.set_result(process)
            ended, cause = await self._wait(life, process, self._time_left(step))
        finally:
            self.gate.close(life)
            await self.world.close(life)
        await self.gate.settled(life)
        self.output.blot(CANARY, BLOT)
        self._read_log(life, ended=True)
        event = self._ended(life, ended, cause, process.pid)
        self.record(event)
        if event.ending == "died" and self.plan.canon is not None:
            canon = self.plan.canon.of_run(self.run_id)
            mark = canon.fingerprint(await self._view())
            self.record(Wreck(life=life, state=mark))
        self.life += 1
        return event

    def _time_left(self, step: _Step) -> float:
        """Seconds that a life may take; the one after ``done`` has its full time."""
        limit = self.plan.scenario.limits.life_seconds
        if step.purpose == "again":
            return limit
        return max(0.0, min(limit, self.deadline - time.monotonic()))

    async def _wait(
        self, life: int, process: Life, seconds: float
    ) -> tuple[Exit, Cause]:
        try:
            async with asyncio.timeout(seconds):
                ended = await process.wait()
        except TimeoutError:
            self.gate.close(life)
            return await process.kill(), self.causes.get(life, "limit")
        return ended, self.causes.get(life, "itself")

    async def _end_life(self, life: int, cause: Cause) -> None:
        """The gate's callback: while it holds a message of that life, end it."""
        self.causes[life] = cause
        await (await self.process).kill()

    def _ended(self, life: int, ended: Exit, cause: Cause, pid: int) -> LifeEnded:
        ending: Ending = "died"
        if cause == "itself" and ended.signal is None:
            ending = self._meaning(ended.code)
        return LifeEnded(
            life=life,
            cause=cause,
            ending=ending,
            pid=pid,
            code=ended.code,
            signal=ended.signal,
            orphans=ended.orphans,
            tail=self.output.tail() if ending != "done" and cause != "fault" else (),
            output=f"{self.plan.name}/{self.output.stderr.name}",
        )

    def _meaning(self, code: int | None) -> Ending:
        exits = self.plan.manifest.exits
        if code in exits.done:
            return "done"
        if code in exits.parked:
            return "parked"
        return "failed" if code in exits.failed else "died"

    def _next(self, end: LifeEnded) -> _Step | RunEnded:
        """What follows a life: another one, or the end of the run."""
        life = end.life
        if end.cause == "cut":
            reason = "a world that is already known"
            return RunEnded(life=life, outcome="cut", reason=reason)
        if end.ending == "done":
            return RunEnded(life=life, outcome="done", answer=self.output.answer())
        if end.ending == "failed":
            return RunEnded(life=life, outcome="failed", reason="the agent gave it up")
        late = time.monotonic() >= self.deadline
        if end.ending == "parked":
            step = self._unpark()
            if step is None or not late:
                parked = RunEnded(life=life, outcome="parked", reason="nothing is due")
                return step or parked
        if end.cause != "fault":
            self.deaths += end.ending == "died"
        return self._gave_up(life, late=late) or _Step("resume")

    def _gave_up(self, life: int, *, late: bool) -> RunEnded | None:
        lives = self.plan.manifest.contract.max_lives
        reason = ""
        if late:
            limit = self.plan.scenario.limits.trial_seconds
            reason = f"it had not ended after {limit:g} s"
        elif self.deaths > lives:
            reason = f"{self.deaths} lives ended that no scheduled fault had ended"
        return RunEnded(life=life, outcome="endless", reason=reason) if reason else None

    def _unpark(self) -> _Step | None:
        """How a parked run goes on, or None if nothing will ever wake it."""
        script = self.plan.scenario.llm.script
        number = open_turn(self.record.events, script)
        if number is None:
            return None
        turn = script[number]
        if isinstance(turn, AskTurn):
            gates = [n for n, t in enumerate(script) if isinstance(t, AskTurn)]
            answer = self.plan.scenario.human[gates.index(number)]
            return _Step("answer", answer=answer)
        assert isinstance(turn, WaitTurn)
        asked = next(
            e.t for e in self.record.events if isinstance(e, Asked) and e.turn == number
        )
        due = self.record.began + asked + turn.wait
        again = time.monotonic() + SECONDS_BETWEEN_RESUMES
        return _Step("resume", at=due if due > time.monotonic() else again)

    async def _until(self, moment: float) -> None:
        """A durable wait takes its time, and that is no race: nothing else runs."""
        left = min(moment, self.deadline) - time.monotonic()
        if left > 0:
            await asyncio.sleep(left)

    def _command(self, step: _Step, world: Mapping[str, str]) -> Command:
        manifest, scenario = self.plan.manifest, self.plan.scenario
        values = {
            "run": self.run_id,
            "goal": scenario.task.goal,
            "store": manifest.store.value,
            "python": sys.executable,
            "answer": step.answer or "",
        }
        words = manifest.start
        if step.purpose in ("resume", "again"):
            words = manifest.resume or manifest.start
        elif step.purpose == "answer":
            assert manifest.answer is not None
            words = manifest.answer
        own = {name: fill_text(text, values) for name, text in manifest.env.items()}
        run = {"CHAOSKIT_RUN_ID": self.run_id}
        self.output = Output(
            self.folder / f"life-{self.life}.out",
            self.folder / f"life-{self.life}.err",
            manifest.log,
        )
        return Command(
            argv=tuple(fill(words, values)),
            cwd=self.plan.agent_folder,
            env=inherited_environment() | own | dict(world) | run,
            stdout=self.output.stdout,
            stderr=self.output.stderr,
        )

    def _read_log(self, life: int, *, ended: bool = False) -> None:
        for line in self.output.new_log_lines(ended=ended):
            entry = {"stream": line.stream, "line": line.line, "entry": line.entry}
            self.record(Logged.model_validate({"life": life, **entry}))

    async def _view(self) -> View:
        world = await self.world.view()
        memory = remembered(self.record.events, self.plan.manifest.log, world)
        return {**world, "memory": memory}

    async def _look(self, address: Address) -> bool:
        """The gate's watch: keep a world nobody has seen; True ends the life."""
        watching = self.plan.watching
        assert watching is not None
        assert address.life is not None
        self._read_log(address.life)
        view = await self._view()
        mark = str(address)
        if watching.canon is not None:
            mark = watching.canon.of_run(self.run_id).fingerprint(view)
            if mark in watching.known:
                return self._is_back(mark, watching)
        self.passed.add(mark)
        if mark not in self.looks:
            state = await self._state(address, view, snapshot=watching.snapshots)
            seen = mark if watching.canon is not None else None
            self.looks[mark] = Look(state, str(address), seen)
        return False

    def _is_back(self, mark: str, watching: Watching) -> bool:
        """Whether a recovery has come to a known world other than its own start."""
        first = not self.passed
        if first:
            self.passed.add(mark)
        return not (first or mark in self.passed or watching.thorough)

    async def _state(
        self, address: Address, view: View, *, snapshot: bool
    ) -> WorldState:
        origin = self.plan.visit.origin
        path = origin.path if origin else self.plan.visit.schedule
        fault = Fault(FaultKind.KILL, address)
        prefix = (*self.record.events, *self._restored_death(fault))
        return WorldState(
            path=path.then(fault),
            life=address.life or 0,
            run_id=self.run_id,
            began=self.record.began,
            prefix=prefix,
            view=view,
            services=await self.world.snapshot() if snapshot else {},
            names=dict(self.gate.names.known),
        )

    def _restored_death(self, fault: Fault) -> tuple[Event, ...]:
        """The kill that a snapshot stands for."""
        life, now = fault.at.life or 0, self.record.seconds()
        return (
            FaultFired(life=life, t=now, fault=str(fault)),
            LifeEnded(
                life=life, t=now, cause="restored", ending="died", signal=SIGKILL
            ),
        )


def inherited_environment() -> dict[str, str]:
    """The harness's own environment, with loopback kept clear of any proxy."""
    loopback = "127.0.0.1,localhost"
    return dict(os.environ) | {"NO_PROXY": loopback, "no_proxy": loopback}
