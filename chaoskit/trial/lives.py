"""The lives of one trial: begun on fresh sockets, waited for, closed, put on record.

What is the same for a run that goes from life to life and for one that many processes
work on; `run` and `fleet` decide which life comes when.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from chaoskit.agents import Exit, Launcher
from chaoskit.agents.output import Output
from chaoskit.explore.steps import Steps
from chaoskit.gate import Census, FreshNames, Gate, Recorder
from chaoskit.model.address import Address
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import Cause, FaultFired, LifeEnded, LifeStarted, RunEnded
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.trial import Trial
from chaoskit.model.visit import Visited
from chaoskit.trial.account import Account
from chaoskit.trial.command import command
from chaoskit.trial.company import Company
from chaoskit.trial.course import Step
from chaoskit.trial.leaks import Leaks
from chaoskit.trial.living import Living, News
from chaoskit.trial.looks import Looks
from chaoskit.trial.patience import Patience
from chaoskit.trial.plan import Plan
from chaoskit.trial.strikes import Strikes, skews
from chaoskit.world import World

EndLife = Callable[[int, Cause], Awaitable[None]]


class Lives:
    """All lives of a trial, and the gate that they meet.

    ``census`` numbers the addresses where several live side by side; ``on_fault`` is
    told of a life that a fault ends, before it is over.
    """

    def __init__(
        self,
        plan: Plan,
        world: World,
        launcher: Launcher,
        folder: Path,
        record: Recorder,
        patience: Patience | None = None,
        census: Census | None = None,
        on_fault: Callable[[Living], None] = lambda _: None,
    ) -> None:
        self.plan = plan
        self.record = record
        self.company = Company()
        self.outputs: dict[int, Output] = {}
        self._world = world
        self._launcher = launcher
        self._folder = folder
        self._on_fault = on_fault
        self._is_fleet = census is not None
        self._next = 0
        self._entrance = asyncio.Lock()
        self._clock = launcher.clock() if skews(plan.visit.schedule) else None
        names = self._take_up_origin()
        self.patience = patience or Patience()
        self._leaks = Leaks(record, names)
        self._looks = Looks(plan, world, record, names, self._leaks)
        self._account = Account(plan, record, self._looks)
        self.gate = self._gate_with(names, census)

    def _take_up_origin(self) -> FreshNames:
        """Go on with the history of the world that this trial starts in."""
        plan, origin = self.plan, self.plan.visit.origin
        names = FreshNames(
            plan.run,
            said=json.dumps([call.all_args for call in plan.scenario.calls()]),
            patterns=plan.fresh,
            blots=self.record.blots,
        )
        if origin:
            names.known.update(origin.names)
            self._next = origin.life + 1
            self.record.began = origin.began
            for event in origin.prefix:
                self.record.place(event)
        return names

    def _gate_with(self, names: FreshNames, census: Census | None) -> Gate:
        plan = self.plan
        grace = plan.scenario.limits.grace_seconds
        strikes = Strikes(self.company, self._world, grace, self._clock, self._lost)
        return Gate(
            self.record,
            names,
            plan.visit.schedule,
            self._end_life,
            self._look if plan.watching else None,
            strikes,
            self.company,
            census,
            Steps(plan.visit.tread, self.record.events) if plan.visit.tread else None,
        )

    async def prepare(self) -> None:
        """Bring the world to where the trial starts."""
        origin = self.plan.visit.origin
        await self._world.reset(self.gate, self.plan.scenario)
        if origin:
            await self._world.restore(origin.services)
            last = origin.path.faults[-1]
            if last.kind is FaultKind.POWERLOSS:
                await self._world.lose_power(last.chosen)
        if self._clock is not None:
            self._clock.set(0)

    @property
    def newest(self) -> int:
        """The number of the life that was begun last."""
        return self._next - 1

    def number(self, step: Step) -> int:
        """The number of a new life, which is put on record."""
        life = self._next
        self._next += 1
        started = LifeStarted(
            life=life, purpose=step.purpose, answer=step.answer, process=step.process
        )
        self.record(started)
        return life

    async def begin(
        self,
        life: int,
        step: Step,
        deadline: float,
        patience: Patience | None = None,
    ) -> Living:
        """Start it, on sockets of its own; ``deadline`` is on the trial's clock.

        Or on that of ``patience``, where the trial's may be held.
        """
        async with self._entrance:  # one after the other: they share ports
            services = await self._world.open(life)
            output = self.outputs[life] = self._output_of(life, step)
            order = command(
                self.plan,
                step,
                services,
                output,
                inherit=self._world.inherited(life),
                clock=self._clock is not None,
            )
            process = await self._launcher.start(order)
        clock = patience or self.patience
        living = Living(life, process, output, deadline, clock, step)
        self.company.add(living)
        return living

    def _output_of(self, life: int, step: Step) -> Output:
        process = step.process or ""
        stem = f"life-{life}-{process}".rstrip("-") if life >= 0 else process
        out, err = (self._folder / f"{stem}.{end}" for end in ("out", "err"))
        if life < 0:  # the harness's own look: the newest is kept
            out.unlink(missing_ok=True)
            err.unlink(missing_ok=True)
        return Output(out, err, self.plan.manifest.log)

    async def wait(
        self, living: Living, paused: Callable[[Living], Awaitable[None]]
    ) -> tuple[Exit, Cause]:
        """Wait for a life's end and make sure of it, whatever happens meanwhile."""
        cause: Cause = "itself"
        try:
            while (news := await living.news()) is News.PAUSED:
                await paused(living)
            if news is News.OUT_OF_TIME:
                self.gate.close(living.number)
                cause = "limit"
        finally:
            ended = living.left or await living.process.kill()
            if living.left is None:
                living.release()
        if ended.signal is None:  # it was faster than the limit after all
            cause = "itself"
        return ended, living.struck or cause

    async def _end_life(self, life: int, cause: Cause) -> None:
        """The gate's callback: while it holds a message of that life, end it."""
        living = self.company.get(life)
        if living is not None:  # else it was faster, and has ended by itself
            self._on_fault(living)
            living.struck = cause
            await living.process.kill()

    def _lost(self, living: Living) -> None:
        """One that goes with the machine: nothing of it is on its way any more."""
        self._on_fault(living)
        self.gate.close(living.number)

    async def close(self, life: int) -> None:
        """Nothing that still comes from it counts."""
        self.company.remove(life)
        self.gate.close(life)
        await self._world.close(life)

    async def end(self, living: Living, ended: Exit, cause: Cause) -> LifeEnded:
        """Take in what a life has left, and record its end."""
        if living.left is None:
            await self.settle(living)
        else:
            await self.read_log(living)
        with self.patience.held():
            return await self._account.end(living, ended, cause)

    async def settle(self, living: Living) -> None:
        """Wait for the last of its messages, and take in the rest of its log."""
        await self.gate.settled(living.number)
        if living.number >= 0:
            self._account.read_log(living.number, living.output, ended=True)
            self._leaks.in_output(living.number, living.output)
        if self.record.blots is not None:
            living.output.blot(self.record.blots)

    async def end_those_left(self) -> None:
        """The children of lives whose first process was killed alone."""
        for living in self.company.left:
            await living.process.kill()
            await self.close(living.number)
            await self.settle(living)

    async def _look(self, address: Address) -> bool:
        """The gate's watch."""
        assert self.plan.watching is not None
        assert address.life is not None
        with self.patience.held():
            living = self.company.get(address.life)
            if living is not None and not self._is_fleet:
                await self.read_log(living)
            return await self._looks.at(address, self.plan.watching)

    async def read_log(self, living: Living) -> None:
        """What a life that still runs, or is stopped, has written until now."""
        await living.process.written()
        self._account.read_log(living.number, living.output)

    def sheltered(self) -> AbstractAsyncContextManager[None]:
        """See `World.sheltered`."""
        return self._world.sheltered()

    async def last_look(self, end: RunEnded) -> None:
        """What the stores hold once all is over."""
        if end.outcome == "cut":
            return
        with self.patience.held():
            await self._looks.view(after=self.newest)

    async def look_after(self) -> None:
        """See that the world is still there, now that nobody is in it.

        Raises:
            ConnectionError: a server of it has gone, which is no fault of the agent.
        """
        with self.patience.held():
            await self._looks.view()

    def result(self, end: RunEnded) -> Visited:
        """The trial, now that it is over."""
        self.record(end)
        plan = self.plan
        unfired = tuple(f for f in self.gate.unfired if not self._fired_anywhere(f))
        history = tuple(self.record.events)
        schedule = plan.path if plan.visit.tread is None else self._fired()
        trial = Trial(plan.name, plan.run, schedule, history, unfired)
        return Visited(plan.visit, trial, self._looks.kept)

    def _fired(self) -> Schedule:
        """What a trial that chose its own faults comes to."""
        fired = (e.fault for e in self.record.events if isinstance(e, FaultFired))
        return Schedule(tuple(map(Fault.parse, fired)))

    def _fired_anywhere(self, fault: Fault) -> bool:
        fired = (e.fault for e in self.record.events if isinstance(e, FaultFired))
        return fault.at.life is None and str(fault) in fired
