"""What tests of services share: a gate without an agent, and a place to serve.

Tests here may be ``async def``; each runs on a fresh event loop of its own.
"""

import asyncio
import inspect
import logging
import os
import signal
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import psycopg
import pytest

from chaoskit.agents import Command, Exit, Life, ProcessLauncher
from chaoskit.gate import FreshNames, Gate, Recorder, Watch
from chaoskit.model.address import Address
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import Cause, Crossed, FaultFired
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.world.files import Files
from chaoskit.world.postgres import Postgres
from chaoskit.world.postgres.own import OwnServer as PostgresServer
from chaoskit.world.service import Service

RUN_ID = "run-7f3a"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


class Witness:
    """A history's sink that can be waited on."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._more = asyncio.Event()

    def write(self, line: str) -> None:
        self.lines.append(line)
        self._more.set()

    async def seen(self, kind: str, count: int = 1) -> None:
        """Wait until the history holds so many events of a kind."""
        while sum(f'"kind":"{kind}"' in line for line in self.lines) < count:
            self._more.clear()
            await self._more.wait()


@pytest.fixture
def make_gate() -> Callable[..., Gate]:
    """Build a gate whose kills are only noted: ``make_gate(schedule, killed)``.

    Its history can be waited on: ``await gate.record.sink.seen("delivered")``.
    """

    def make(
        schedule: str = "",
        killed: list[int] | None = None,
        run_id: str = RUN_ID,
        watch: Watch | None = None,
    ) -> Gate:
        async def end_life(life: int, cause: Cause) -> None:
            if killed is not None:
                killed.append(life)

        names = FreshNames(run_id)
        record = Recorder(Witness())
        return Gate(record, names, Schedule.parse(schedule), end_life, watch)

    return make


class Hold:
    """A gate's watch that holds every message at one address until let go."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.held = asyncio.Event()
        self.let_go = asyncio.Event()

    async def __call__(self, address: Address) -> bool:
        if str(address) == self.address:
            self.held.set()
            await self.let_go.wait()
        return False


@pytest.fixture
def hold() -> type[Hold]:
    """Hold the messages at an address: ``make_gate(watch=hold(address))``."""
    return Hold


@pytest.fixture
def make_scenario() -> Callable[..., Scenario]:
    """Build a scenario from its script and its tools, all else being given."""

    def make(
        script: Sequence[dict[str, Any]] = ({"say": "Done."},),
        tools: dict[str, Any] | None = None,
        **rest: Any,
    ) -> Scenario:
        classes = {
            name: {"class": tool} if isinstance(tool, str) else tool
            for name, tool in (tools or {}).items()
        }
        return Scenario.model_validate(
            {
                "name": "test",
                "agent": "agent.yaml",
                "task": {"goal": "Book a flight to NYC"},
                "llm": {"script": script, "fresh_ids": rest.pop("fresh_ids", True)},
                "tools": classes,
                "human": ["approve"] * len(script),
                **rest,
            }
        )

    return make


Serve = Callable[[Service, Gate, Scenario], AbstractAsyncContextManager[dict[str, str]]]


@pytest.fixture
def serve() -> Serve:
    """Run a service with life 0 open; gives the variables of that life."""

    @asynccontextmanager
    async def serving(
        service: Service, gate: Gate, scenario: Scenario
    ) -> AsyncIterator[dict[str, str]]:
        await service.start()
        try:
            await service.reset(gate, scenario)
            yield await service.open(0)
        finally:
            await service.stop()

    return serving


@pytest.fixture
def web() -> Callable[[], aiohttp.ClientSession]:
    """Make an HTTP client that keeps its connections and gives up after 5 s."""
    return lambda: aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5))


@pytest.fixture(autouse=True)
def _nothing_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No service warns about an agent that dies: dying is what agents do here."""
    yield
    logged = caplog.get_records("call")
    assert [r.getMessage() for r in logged if r.levelno >= logging.WARNING] == []


class DiskBench:
    """The files service with real processes on it, which a fault really kills."""

    def __init__(self, files: Files, scenario: Scenario, folder: Path) -> None:
        self.files = files
        self.out, self.err = folder / "out", folder / "err"
        self.process: Life
        self.gate: Gate
        self.lives = 0
        self._scenario = scenario
        self._launcher = ProcessLauncher()

    async def trial(self, schedule: str = "", watch: Watch | None = None) -> None:
        """Begin a trial, on an empty disk."""
        parsed = Schedule.parse(schedule)
        self.gate = Gate(
            Recorder(Witness()),
            FreshNames(RUN_ID),
            parsed,
            self._end_life,
            watch,
            self._strike,
        )
        self.lives = 0
        await self.files.reset(self.gate, self._scenario)

    async def begin(self, code: str, life: int | None = None) -> Life:
        """Start a Python program in the folder, as the next life."""
        self.lives = self.lives + 1 if life is None else life + 1
        variables = await self.files.open(self.lives - 1)
        self.out.write_text("")
        self.err.write_text("")
        code = f"import os\nos.chdir(os.environ['CHAOSKIT_STATE_DIR'])\n{code}"
        argv = (sys.executable, "-I", "-S", "-c", code)
        environment = {**os.environ, **variables}
        cwd = self.out.parent
        order = Command(argv, cwd, environment, self.out, self.err)
        self.process = await self._launcher.start(order)
        return self.process

    async def end(self) -> Exit:
        """Wait for the life's end, and do what a trial does then."""
        life = self.lives - 1
        ended = await self.process.wait()
        self.gate.close(life)
        await self.files.close(life)
        await self.gate.settled(life)
        return ended

    async def live(self, code: str) -> Exit:
        """A whole life."""
        await self.begin(code)
        return await self.end()

    async def run(self, code: str) -> str:
        """A whole life that ends well; what it printed."""
        ended = await self.live(code)
        assert (ended.code, self.err.read_text()) == (0, "")
        return self.out.read_text()

    async def content(self, kind: str = "now") -> dict[str, Any]:
        """What the view shows of each path, without the words around it."""
        shown: Any = await self.files.view()
        return {
            path: one and next(iter(one.values()))
            for path, one in shown.get(kind, {}).items()
        }

    def crossed(self) -> list[str]:
        return [
            event.address.partition("files.")[2] + (" late" if event.late else "")
            for event in self.gate.record.events
            if isinstance(event, Crossed)
        ]

    def fired(self) -> list[str]:
        events = self.gate.record.events
        return [event.fault for event in events if isinstance(event, FaultFired)]

    async def stop(self) -> None:
        await self._launcher.close()
        await self.files.stop()

    async def _end_life(self, life: int, cause: Cause) -> None:
        await self.process.kill()

    async def _strike(self, life: int, fault: Fault) -> None:
        if fault.kind is FaultKind.KILL_ONE:
            await self.process.kill_one()
        elif fault.kind is FaultKind.TERM:
            await self.process.signal(signal.SIGTERM)
        elif fault.kind is FaultKind.POWERLOSS:
            await self.files.lose_power(fault.chosen)


@pytest.fixture
def on_disk(
    make_scenario: Callable[..., Scenario], tmp_path: Path
) -> Callable[[], AbstractAsyncContextManager[DiskBench]]:
    """Run the files service: ``async with on_disk() as bench``."""

    @asynccontextmanager
    async def running() -> AsyncIterator[DiskBench]:
        scenario = make_scenario(faults=["kill", "powerloss"])
        bench = DiskBench(Files(tmp_path / "files"), scenario, tmp_path)
        await bench.files.start()
        try:
            async with asyncio.timeout(60):
                await bench.trial()
                yield bench
        finally:
            await bench.stop()

    return running


class PostgresBench:
    """PostgreSQL behind its relay with life 0 open, and the gate in it."""

    def __init__(
        self, service: Postgres, make_scenario: Callable[..., Scenario]
    ) -> None:
        self.service = service
        self.gate: Gate
        self.url = ""
        self.ended: list[int] = []
        self.look: Callable[[], Awaitable[Any]] | None = None
        self.found: list[Any] = []
        self._make_scenario = make_scenario
        self._opened: list[Any] = []

    async def trial(
        self, schedule: str = "", watch: Any = None, durability: str = "on"
    ) -> None:
        """A fresh trial, with life 0 open."""
        names, parsed = FreshNames(RUN_ID), Schedule.parse(schedule)
        self.gate = Gate(Recorder(), names, parsed, self._end_life, watch)
        scenario = self._make_scenario(durability={"postgres": durability})
        await self.service.reset(self.gate, scenario)
        await self.open(0)

    async def open(self, life: int) -> None:
        self.url = (await self.service.open(life))["DATABASE_URL"]

    async def over(self, life: int = 0) -> None:
        """What a trial does when a life has ended."""
        self.gate.close(life)
        await self.service.close(life)
        await self.gate.settled(life)

    async def connect(self, **options: Any) -> Any:
        """A client of psycopg through the relay; by default without transactions."""
        options = {"autocommit": True, **options}
        made = await psycopg.AsyncConnection.connect(self.url, **options)
        self._opened.append(made)
        return made

    async def raw(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A bare connection through the relay, logged in."""
        parts = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        words = f"user\0{parts.username}\0database\0{parts.path[1:]}\0\0".encode()
        writer.write(struct.pack(">II", 8 + len(words), 3 << 16) + words)
        await reader.readuntil(b"Z\0\0\0\5I")
        return reader, writer

    async def real(self) -> Any:
        """A connection of a test to the real server."""
        where = self.service.server.connection(self.service.server.database)
        made = await psycopg.AsyncConnection.connect(**where, autocommit=True)
        self._opened.append(made)
        return made

    async def rows(self, query: str = "SELECT v FROM t ORDER BY id") -> list[Any]:
        """The first column of what the real server answers."""
        real = await self.real()
        rows = await (await real.execute(query)).fetchall()
        await real.close()
        return [row[0] for row in rows]

    async def table(self) -> Any:
        """A connection through the relay that has made an empty table ``t``."""
        made = await self.connect()
        await made.execute("CREATE TABLE t (id serial PRIMARY KEY, v text UNIQUE)")
        return made

    def crossed(self, edge: str = "") -> list[str]:
        """What crossed (an edge), without life and service."""
        return [
            event.address.partition("postgres.")[2].removesuffix(edge)
            + (" late" if event.late else "")
            for event in self.gate.record.events
            if isinstance(event, Crossed) and event.address.endswith(edge)
        ]

    def fired(self) -> list[str]:
        events = self.gate.record.events
        return [event.fault for event in events if isinstance(event, FaultFired)]

    async def stop(self) -> None:
        for each in self._opened:
            await each.close()
        await self.service.stop()

    async def _end_life(self, life: int, cause: Cause) -> None:
        self.ended.append(life)
        if self.look is not None:
            self.found.append(await self.look())


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server for all tests that do not stop it."""
    server = PostgresServer(tmp_path_factory.mktemp("postgres"))
    asyncio.run(server.start())
    where = server.connection("postgres")
    yield f"postgresql://{where['user']}@/postgres?host={where['host']}"
    asyncio.run(server.stop())


@pytest.fixture
def on_postgres(
    make_scenario: Callable[..., Scenario], postgres_url: str, tmp_path: Path
) -> Callable[..., AbstractAsyncContextManager[PostgresBench]]:
    """Run PostgreSQL: ``async with on_postgres(schedule) as bench``.

    With ``own=True`` on a server of its own.
    """

    @asynccontextmanager
    async def running(
        schedule: str = "", watch: Any = None, *, own: bool = False
    ) -> AsyncIterator[PostgresBench]:
        url = None if own else postgres_url
        bench = PostgresBench(Postgres(tmp_path / "postgres", url), make_scenario)
        async with asyncio.timeout(60):
            await bench.service.start()
            try:
                await bench.trial(schedule, watch)
                yield bench
            finally:
                await bench.stop()

    return running
