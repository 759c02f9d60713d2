"""Plays a trial of a long-lived agent: processes that are there, and a run for them.

All processes are started, the run is submitted, and its status is asked for until it
says that the run is over. Whoever dies is started again at once, as by a supervisor; a
submission or an answer is brought again, as its user would. A pause stops one process,
and it is for the others to go on; then it goes on itself, finds out, and is ended.

What is done at the end is waited for: only once nothing is on its way any more does the
trial stop the processes, by SIGTERM. After `done` they are all started once more, and
must find nothing to do.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from chaoskit.agents import Launcher
from chaoskit.checks.losses import forgets
from chaoskit.gate import Recorder
from chaoskit.model.history import (
    Asked,
    Crossed,
    FaultFired,
    Outcome,
    Purpose,
    RunEnded,
)
from chaoskit.model.scenario import AskTurn, WaitTurn
from chaoskit.model.schedule import Fault
from chaoskit.model.visit import Visited
from chaoskit.model.waiting import open_turn
from chaoskit.trial.course import Step
from chaoskit.trial.crew import SECONDS_AT_REST, Crew
from chaoskit.trial.generations import Generations
from chaoskit.trial.inspection import Inspection
from chaoskit.trial.lives import Lives
from chaoskit.trial.living import Living
from chaoskit.trial.own_command import OwnCommands
from chaoskit.trial.patience import Patience
from chaoskit.trial.plan import Plan
from chaoskit.trial.port import Port
from chaoskit.trial.status import Seen, StatusLooks
from chaoskit.trial.stillness import Stillness
from chaoskit.world import World

SECONDS_QUIET = 0.2
"""So long nothing has happened before the status is asked for."""
SECONDS_BETWEEN_LOOKS_MAX = 1.0
SECONDS_TO_SETTLE = 0.3
TRIES_AFTER_DONE = 3


class Fleet:
    """One trial of a long-lived agent; `play` it once."""

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
        self._limits = plan.scenario.limits
        self._patience = Patience()
        self._census = Generations(self._patience.now)
        self._lives = Lives(
            *(plan, world, launcher, folder, record),
            patience=self._patience,
            census=self._census,
            on_fault=self._on_fault,
        )
        self._gate = self._lives.gate
        self._still = Stillness(self._gate, self._census, self._patience.now)
        self._crew = Crew(self._lives, self._census, self._still)
        commands = OwnCommands(self._lives)
        self._status = StatusLooks(self._lives, commands)
        self._inspection = Inspection(self._lives, commands)
        self._since = self._patience.now()
        self._deadline = self._since + self._limits.trial_seconds
        self._answers: dict[int, asyncio.Task[bool]] = {}
        self._brought: dict[int, int] = {}
        """By turn: the event at which its answer was brought last."""

    def _on_fault(self, living: Living) -> None:
        """What led to a scheduled end does not use up the trial's time."""
        now = self._patience.now()
        self._deadline += now - self._since
        self._since = now
        self._crew.fault_in(living)

    async def play(self) -> Visited:
        """All of it."""
        await self._lives.prepare()
        try:
            end = await self._run()
            self._gate.disarm()
            await self._crew.stop()
            if end.outcome == "done":
                await self._once_more()
            else:
                await self._lives.look_after()
            await self._inspection.look("end", self._lives.newest)
        finally:
            await self._crew.end()
        await self._lives.last_look(end)
        return self._lives.result(end)

    async def _run(self) -> RunEnded:
        """Until the run is over, one way or the other."""
        if late := await self._man_all("start"):
            return self._ended("endless", late)
        # They are there before the run: how they start is no part of any race.
        grace = self._limits.grace_seconds
        await self._still.settle(self._present, SECONDS_TO_SETTLE, grace)
        self._crew.send(Step("submit", process="submit"), again=True)
        while True:
            await self._until_quiet()
            seen = await self._look()
            end = await self._over(seen)
            if end is not None:
                if not self._crew.paused:
                    return end
                await self._let_go()
            elif why := self._endless():
                if not self._crew.paused or self._is_late:
                    return self._ended("endless", why)
                await self._let_go()

    async def _man_all(self, purpose: Purpose) -> str:
        """Start every process, in order; says who is not ready in time."""
        for name, process in self._plan.manifest.fleet:
            port = Port(process.ready.tcp) if process.ready else None
            if port is not None and purpose == "start":
                port.must_be_free()
            self._crew.man(name, purpose)
            end = self._patience.now() + self._limits.life_seconds
            while port is not None and not await port.answers():
                await self._tick()
                if self._patience.now() > end:
                    return f"{name} did not listen on port {port.number} in time"
        return ""

    async def _tick(self) -> None:
        await self._still.tick()
        self._crew.raise_trouble()

    async def _until_quiet(self) -> None:
        """Wait until there may be something to see, but not for long."""
        began = self._patience.now()
        while (now := self._patience.now()) - began < SECONDS_BETWEEN_LOOKS_MAX:
            await self._tick()
            # The longer it is quiet, the less often it is looked.
            pause = max(SECONDS_QUIET, (now - self._census.news_at) / 4)
            if now - max(began, self._census.news_at) >= pause:
                return

    async def _look(self) -> Seen:
        now = self._patience.now()
        left = max(1.0, self._deadline - now)
        seen = await self._status.look(now + min(left, self._limits.life_seconds))
        self._crew.raise_trouble()
        return seen

    async def _over(self, seen: Seen) -> RunEnded | None:
        """How the run has ended, if it has."""
        if seen.status == "running":
            self._status.note(seen)
        if seen.status in ("done", "failed"):
            await self._settle()
            self._status.note(seen)
            if seen.status == "failed":
                return self._ended("failed", "the agent gave it up")
            return self._ended("done", answer=seen.answer)
        if seen.status == "parked":
            return await self._parked(seen)
        return None

    async def _settle(self) -> bool:
        """Wait until nothing is on its way; a fault that is due may still come."""
        grace = self._limits.grace_seconds
        is_still = await self._still.settle(self._present, SECONDS_TO_SETTLE, grace)
        end = self._patience.now() + grace
        while self._gate.is_due(self._census.number) and self._patience.now() < end:
            await self._tick()
        return is_still

    def _present(self) -> tuple[Living, ...]:
        return self._crew.present

    async def _parked(self, seen: Seen) -> RunEnded | None:
        """What a parked run waits for is brought; one that waits for nothing is over.

        What it waits for may just have come: so it is looked at again, at rest.
        """
        turn = self._open_turn()
        script = self._plan.scenario.llm.script
        if turn is not None:
            self._status.note(seen)
        if turn is not None and isinstance(script[turn], AskTurn):
            self._bring_answer(turn)
            return None
        if turn is not None and isinstance(script[turn], WaitTurn):
            return None
        news = self._census.news_at
        await self._settle()
        again = await self._look()
        if again.status == "parked" and self._census.news_at == news:
            self._status.note(again)
            return self._ended("parked", "nothing is due")
        return None

    def _open_turn(self) -> int | None:
        return open_turn(self._record.events, self._plan.scenario.llm.script)

    def _bring_answer(self, turn: int) -> None:
        """Once; and again where it was lost on its way, and has not been taken up."""
        script = self._plan.scenario.llm.script
        gates = [n for n, t in enumerate(script) if isinstance(t, AskTurn)]
        answer = self._plan.scenario.human[gates.index(turn)]
        if turn in self._answers and not self._is_lost(turn):
            return
        self._brought[turn] = len(self._record.events)
        step = Step("answer", answer=answer, process="answer")
        self._answers[turn] = self._crew.send(step, again=False)

    def _is_lost(self, turn: int) -> bool:
        """Whether nobody has it: who brought it died, or the store has forgotten it.

        And all is quiet since.
        """
        bringing = self._answers[turn]
        is_quiet = self._patience.now() - self._census.news_at >= SECONDS_AT_REST
        if not bringing.done() or not is_quiet:
            return False
        return not bringing.result() or self._has_forgotten(self._brought[turn])

    def _has_forgotten(self, since: int) -> bool:
        """Whether a store has lost what it had acknowledged since an event."""
        later = self._record.events[since:]
        fired = (Fault.parse(e.fault) for e in later if isinstance(e, FaultFired))
        return any(forgets(fault, self._plan.scenario) for fault in fired)

    @property
    def _is_late(self) -> bool:
        return self._patience.now() >= self._deadline

    def _endless(self) -> str:
        """Why the run is given up, or nothing."""
        lives_max = self._plan.manifest.contract.max_lives
        if self._is_late:
            why = f"it had not ended after {self._limits.trial_seconds:g} s"
        elif self._crew.deaths > lives_max:
            why = f"{self._crew.deaths} lives ended that no scheduled fault had ended"
        elif self._quiet_seconds() > self._limits.life_seconds:
            why = f"nothing new happened for {self._limits.life_seconds:g} s"
        else:
            return ""
        last = self._status.last
        said = last.status or f"nothing that is a status: {last.said}"
        return f"{why}; `status` said {said}"

    def _quiet_seconds(self) -> float:
        """How long nothing new has happened that could have."""
        quiet = self._patience.now() - self._census.news_at
        return min([quiet, *self._since_due()])

    def _since_due(self) -> Iterator[float]:
        """How long a wait has been over, if one is open."""
        turn = self._open_turn()
        wait = None if turn is None else self._plan.scenario.llm.script[turn]
        if isinstance(wait, WaitTurn):
            events = self._record.events
            asked = (e.t for e in events if isinstance(e, Asked) and e.turn == turn)
            yield self._record.seconds() - max(asked, default=0.0) - wait.wait

    async def _let_go(self) -> None:
        """Have the paused go on, and wait until they have ended."""
        crew = self._crew
        await self._inspection.look("rest", self._lives.newest)
        crew.may_go_on.set()
        while crew.paused:
            await self._tick()
        crew.may_go_on.clear()
        self._census.stir()

    async def _once_more(self) -> None:
        """After `done`: everybody is started again, and finds nothing to do."""
        await self._man_all("again")
        await self._still.settle(
            self._present, SECONDS_AT_REST, self._limits.grace_seconds
        )
        for _ in range(TRIES_AFTER_DONE):
            seen = await self._look()
            if seen.status is not None:
                break
        self._status.note(seen)
        await self._crew.stop()

    def _ended(
        self, outcome: Outcome, reason: str = "", answer: str | None = None
    ) -> RunEnded:
        """The end, told of the life that crossed last."""
        crossed = (e for e in reversed(self._record.events) if isinstance(e, Crossed))
        life = next((e.life for e in crossed), 0)
        return RunEnded(life=life, outcome=outcome, reason=reason, answer=answer)
