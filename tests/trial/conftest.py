"""A trial without processes: lives are coroutines, the world is one fake service.

A life is written as ``async def life(body)``: it sends messages through the real gate,
writes to its output files, and returns its exit code. To kill it is to cancel it; the
service carries its messages on, as a network does.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from chaoskit.agents import Command, Exit, LaunchError
from chaoskit.campaign.options import Options
from chaoskit.campaign.search import Search
from chaoskit.gate import Dropped, Gate
from chaoskit.loading import Loaded
from chaoskit.model.address import Operation
from chaoskit.model.history import Applied, Asked, Delivered, Event
from chaoskit.model.manifest import Manifest
from chaoskit.model.report import Report
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.model.visit import Visit, Visited
from chaoskit.pool import Pool
from chaoskit.trial import Plan, run_trial
from chaoskit.world import World
from chaoskit.world.llm import CANARY

SECONDS_MAX = 60
PAY: dict[str, Any] = {"tool": "pay", "args": {"order": "o-1"}}
SCRIPT = [{"call": [PAY]}, {"say": "Paid."}]


async def _a_moment() -> None:
    await asyncio.sleep(0)


class FakeService:
    """Keeps what was applied; notes what was asked of it, with the history's length."""

    name = "tools"

    def __init__(self) -> None:
        self.gate: Gate
        self.applied: list[str] = []
        self.keys: set[str] = set()
        self.memory: set[str] = set()
        self.noted: list[tuple[str, int]] = []
        self.seen: list[list[str]] = []
        self.breaks: dict[str, Exception] = {}
        self.at_apply: Callable[[], Awaitable[object]] = _a_moment
        self.busy = asyncio.Event()
        self._messages: set[asyncio.Task[str]] = set()

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        self.gate = gate
        self.applied.clear()
        self.keys.clear()
        self.memory.clear()
        self._note("reset", -1)

    async def open(self, life: int) -> dict[str, str]:
        self._note("open", life)
        return {"CHAOSKIT_TOOLS_URL": f"fake:{life}"}

    async def close(self, life: int) -> None:
        self._note("close", life)

    async def snapshot(self) -> object:
        return list(self.applied)

    async def restore(self, snapshot: object) -> None:
        assert isinstance(snapshot, list)
        self.applied[:] = snapshot
        self._note("restore", -1)

    async def view(self) -> Any:
        self._note("view", -1)
        return list(self.applied)

    def _note(self, what: str, life: int) -> None:
        if what in self.breaks:
            raise self.breaks[what]
        self.noted.append((what, life))

    def _landed(self, message: asyncio.Task[str]) -> None:
        self._messages.discard(message)
        if not message.cancelled():
            message.exception()  # its client may have gone

    async def send(
        self,
        life: int,
        operation: Operation,
        arrived: Callable[[int], Event] | None = None,
        applied: Callable[[int], Event] | None = None,
    ) -> str:
        """What a client sees of a message: a reply, or a lost connection.

        What it means to the history is made of its number, as it arrives and applies.
        """
        try:
            crossing = self.gate.arrive(life, operation)
        except Dropped:
            raise ConnectionError from None
        if arrived is not None:
            self.gate.record(arrived(crossing.message))

        async def apply() -> str:
            await self.at_apply()
            if applied is not None:
                self.gate.record(applied(crossing.message))
            self.applied.append(str(operation))
            self.busy.set()
            return "reply"

        message = asyncio.create_task(self.gate.cross(crossing, apply))
        self._messages.add(message)
        message.add_done_callback(self._landed)
        try:
            return await asyncio.shield(message)
        except Dropped:
            raise ConnectionError from None


@dataclass
class Body:
    """What a life can do."""

    life: int
    command: Command
    service: FakeService

    async def act(self, op: str = "pay", key: str | None = "o-1") -> str:
        """Call a tool."""
        return await self.service.send(self.life, Operation("tools", op, key))

    async def ask(self, turn: int, *carried: str) -> str:
        """Ask the model."""
        asked = Asked(life=self.life, turn=turn, carried=carried)
        chat = Operation("llm", "chat", None)
        return await self.service.send(self.life, chat, lambda _: asked)

    async def pay(self, idempotency_key: str | None) -> str:
        """Call the keyed tool `pay` as the script has it, with all that it leaves."""
        call = {"life": self.life, "tool": "pay", "args": PAY["args"]}
        call["idempotency_key"] = idempotency_key

        def applied(message: int) -> Event:
            first = idempotency_key not in self.service.keys
            self.service.keys |= {idempotency_key} - {None}
            return Applied.model_validate(call | {"message": message, "first": first})

        return await self.service.send(
            self.life,
            Operation("tools", "pay", "o-1"),
            lambda message: Delivered.model_validate(call | {"message": message}),
            applied,
        )

    async def once(self, step: Callable[..., Awaitable[str]], *words: Any) -> None:
        """Take a step, unless a life is known to have taken it to its end."""
        if str(words) not in self.service.memory:
            await step(*words)
            self.service.memory.add(str(words))

    def say(self, text: str) -> None:
        """Write to standard output, without an end of line."""
        with self.command.stdout.open("a", newline="") as file:
            file.write(text)

    def log(self, **entry: Any) -> None:
        """Write a log line to standard error."""
        with self.command.stderr.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    async def hang(self) -> int:
        """Never end."""
        await asyncio.Event().wait()
        raise AssertionError


LifeScript = Callable[[Body], Awaitable[int]]


class FakeLife:
    """A life that is a task. One that lost its connection and did not care exits 1."""

    def __init__(self, pid: int, main: Awaitable[int]) -> None:
        self.pid = pid
        self.kills = 0
        self._task = asyncio.ensure_future(main)

    async def wait(self) -> Exit:
        await asyncio.wait([self._task])
        if self._task.cancelled():
            return Exit(None, 9, 0)
        return Exit(1 if self._task.exception() else self._task.result(), None, 0)

    async def written(self) -> None: ...

    # Who waits at the gate for its message stands still by that.
    async def pause(self) -> None: ...

    async def go_on(self) -> None: ...

    async def kill(self) -> Exit:
        self.kills += 1
        self._task.cancel()
        return await self.wait()


class FakeLauncher:
    """Starts the lives that it was given, in order; the last one again and again."""

    def __init__(self, service: FakeService, scripts: tuple[LifeScript, ...]) -> None:
        self.service = service
        self.scripts = scripts
        self.commands: list[Command] = []
        self.lives: list[FakeLife] = []

    async def warm(self) -> None: ...

    async def close(self) -> None: ...

    async def start(self, command: Command) -> FakeLife:
        number = len(self.commands)
        self.commands.append(command)
        if not self.scripts:
            raise LaunchError("no such program")
        life = int(command.env["CHAOSKIT_TOOLS_URL"].removeprefix("fake:"))
        script = self.scripts[min(number, len(self.scripts) - 1)]
        body = Body(life, command, self.service)
        self.lives.append(FakeLife(1000 + life, script(body)))
        return self.lives[-1]


@dataclass
class Stage:
    """One trial, set up and played."""

    tmp_path: Path
    service: FakeService = field(default_factory=FakeService)
    launcher: FakeLauncher | None = None
    names: int = 0

    @property
    def folder(self) -> Path:
        return self.tmp_path / f"trial-{self.names}"

    async def play(
        self,
        *lives: LifeScript,
        schedule: str = "",
        scenario: dict[str, Any] | None = None,
        manifest: dict[str, Any] | None = None,
        **plan: Any,
    ) -> Visited:
        """Run a trial with these lives."""
        self.names += 1
        self.launcher = FakeLauncher(self.service, lives)
        fields: dict[str, Any] = {
            "name": self.folder.name,
            "visit": Visit(Schedule.parse(schedule)),
            "scenario": scenario_of(**(scenario or {})),
            "manifest": manifest_of(**(manifest or {})),
            "agent_folder": self.tmp_path,
            "run_id": "run-1",
        }
        world = World([self.service])
        async with asyncio.timeout(SECONDS_MAX):
            return await run_trial(
                Plan(**(fields | plan)), world, self.launcher, self.folder
            )


_SCENARIO: dict[str, Any] = {
    "name": "fake",
    "agent": "agent.yaml",
    "task": {"goal": "Pay"},
    "llm": {"script": SCRIPT},
    "tools": {"pay": {"class": "keyed"}},
}
_MANIFEST: dict[str, Any] = {
    "name": "fake",
    "launch": "process",
    "start": ["agent", "{run}"],
    "resume": ["agent", "{run}", "--resume"],
    "answer": ["agent", "{run}", "--answer", "{answer}"],
    "store": "none",
    "contract": {"effects": "exactly-once"},
}


def scenario_of(**changes: Any) -> Scenario:
    """A scenario that pays once."""
    return Scenario.model_validate(_SCENARIO | changes)


def manifest_of(**changes: Any) -> Manifest:
    """The manifest of an agent that keeps nothing."""
    return Manifest.model_validate(_MANIFEST | changes)


class FakePool:
    """Plays each trial in a fake world of its own, when somebody waits for it.

    ``backwards``: of all that was submitted by then, the last one ends first.
    """

    def __init__(self, out: Path, script: LifeScript, *, backwards: bool) -> None:
        self.out = out
        self.script = script
        self.backwards = backwards
        self.plans: list[Plan] = []
        self.ended: list[str] = []
        self._pending: list[tuple[Plan, _Pending]] = []

    def submit(self, plan: Plan) -> "Future[Visited]":
        self.plans.append(plan)
        pending = _Pending(self)
        self._pending.append((plan, pending))
        return pending

    def play_all(self) -> None:
        due, self._pending = self._pending, []
        for plan, pending in reversed(due) if self.backwards else due:
            pending.set_result(asyncio.run(self._play(plan)))
            self.ended.append(plan.name)

    async def _play(self, plan: Plan) -> Visited:
        service = FakeService()
        launcher = FakeLauncher(service, (self.script,))
        return await run_trial(plan, World([service]), launcher, self.out / plan.name)


class _Pending(Future[Visited]):
    def __init__(self, pool: FakePool) -> None:
        super().__init__()
        self._pool = pool

    def result(self, timeout: float | None = None) -> Visited:
        if not self.done():
            self._pool.play_all()
        return super().result(0)


@pytest.fixture
def campaign(tmp_path: Path) -> Callable[..., tuple[Report, FakePool]]:
    """Search over a life with fake trials; the report, and the pool that ran them."""

    def run(
        script: LifeScript,
        *,
        backwards: bool = False,
        name: str = "out",
        store: str = "none",
        **changes: Any,
    ) -> tuple[Report, FakePool]:
        out, nowhere = tmp_path / name, tmp_path / "nowhere.yaml"
        manifest = manifest_of(store=store)
        loaded = Loaded(scenario_of(**changes), manifest, nowhere, nowhere)
        pool = FakePool(out, script, backwards=backwards)
        search = Search(loaded, Options(out), cast(Pool, pool), lambda _: None)
        return search.run(), pool

    return run


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A place to play trials in."""
    return Stage(tmp_path)


@pytest.fixture
def canary() -> str:
    """The API key of every trial."""
    return CANARY


@pytest.fixture
def told() -> Callable[[Visited], list[str]]:
    """A history in short, one word or two an event."""

    def tell(visited: Visited) -> list[str]:
        return [_in_short(event) for event in visited.trial.history]

    return tell


def _in_short(event: Any) -> str:
    match event.kind:
        case "life.started":
            return f"{event.purpose} {event.life}"
        case "life.ended":
            how = event.code if event.signal is None else f"signal {event.signal}"
            return f"{event.ending} {event.life} by {event.cause}: {how}"
        case "crossed":
            return f"{event.address}{' late' if event.late else ''}"
        case "run.ended":
            return str(event.outcome)
        case _:
            return str(event.kind)
