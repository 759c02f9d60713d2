"""What tests of services share: a gate without an agent, and a place to serve.

Tests here may be ``async def``; each runs on a fresh event loop of its own.
"""

import asyncio
import http.client
import inspect
import json
import logging
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import pytest

from chaoskit.gate import EndLife, FreshNames, Gate, Recorder, Strike, Watch
from chaoskit.model.address import Address
from chaoskit.model.history import Cause, Crossed, Event, FaultFired
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.wire import sse
from chaoskit.world.service import Service

RUN_ID = "run-7f3a"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


Kind = TypeVar("Kind", bound=Event)


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


class SeenGate(Gate):
    """A gate whose history a test can ask about."""

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The events of a kind."""
        return [event for event in self.record.events if isinstance(event, kind)]

    def addresses(self) -> list[str]:
        """What crossed."""
        return [event.address for event in self.of(Crossed)]

    def crossed(self, edge: str = "") -> list[str]:
        """What crossed (an edge, as in ``:after``), without life and service."""
        return [
            event.address.partition(".")[2].removesuffix(edge)
            + (" late" if event.late else "")
            for event in self.of(Crossed)
            if event.address.endswith(edge)
        ]

    def edges(self) -> list[str]:
        """The edges that were crossed."""
        return [str(event.at.edge) for event in self.of(Crossed)]

    def fired(self) -> list[str]:
        """The faults that struck."""
        return [event.fault for event in self.of(FaultFired)]


@pytest.fixture
def make_gate() -> Callable[..., SeenGate]:
    """Build a gate whose kills are only noted: ``make_gate(schedule, killed)``.

    Where something is done to the agent: ``make_gate(schedule, end_life=, strike=)``.
    Its history can be waited on: ``await gate.record.sink.seen("delivered")``.
    """

    def make(
        schedule: str = "",
        killed: list[int] | None = None,
        run_id: str = RUN_ID,
        watch: Watch | None = None,
        end_life: EndLife | None = None,
        strike: Strike | None = None,
    ) -> SeenGate:
        async def note(life: int, cause: Cause) -> None:
            if killed is not None:
                killed.append(life)

        names, parsed = FreshNames(run_id), Schedule.parse(schedule)
        record = Recorder(Witness())
        return SeenGate(record, names, parsed, end_life or note, watch, strike)

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
def faulted(make_gate: Callable[..., SeenGate]) -> Callable[..., Any]:
    """A trial with one fault, and the next one after it, which has no trace of it.

    ``async with faulted(service, scenario, schedule, clean) as (gate, variables)``:
    ``clean`` is awaited in the next trial, and sends one message that crosses.
    """

    @asynccontextmanager
    async def trial(
        service: Service,
        scenario: Scenario,
        schedule: str,
        clean: Callable[[dict[str, str]], Awaitable[None]],
        killed: list[int] | None = None,
    ) -> AsyncIterator[tuple[SeenGate, dict[str, str]]]:
        gate, after = make_gate(schedule, killed), make_gate()
        await service.start()
        try:
            await service.reset(gate, scenario)
            yield gate, await service.open(0)
            assert gate.fired() == [schedule]
            await service.reset(after, scenario)
            await clean(await service.open(0))
            assert (after.edges(), after.fired()) == (["before", "after"], [])
        finally:
            await service.stop()

    return trial


@dataclass(frozen=True)
class Got:
    """How a request was answered, and whether the reply was cut short."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[sse.Event]:
        return list(sse.Reader().feed(self.body))

    @property
    def kinds(self) -> list[str]:
        return [event.name for event in self.events]


def _post(url: str, body: Any, headers: Mapping[str, str]) -> Got:
    at = urlsplit(url)
    client = http.client.HTTPConnection(at.hostname or "", at.port, timeout=30)
    try:
        client.request("POST", at.path, json.dumps(body), dict(headers))
        reply = client.getresponse()
        named = {name.lower(): value for name, value in reply.getheaders()}
        return Got(reply.status, named, *_whole(reply))
    finally:
        client.close()


def _whole(reply: http.client.HTTPResponse) -> tuple[bytes, bool]:
    got = b""
    try:
        while some := reply.read1():
            got += some
    except (ConnectionResetError, http.client.IncompleteRead):
        return got, True
    return got, False


@pytest.fixture
def post() -> Callable[..., Awaitable[Got]]:
    """Post JSON on a connection of its own, by the standard library."""

    async def ask(url: str, body: Any, headers: Mapping[str, str] | None = None) -> Got:
        return await asyncio.to_thread(_post, url, body, headers or {})

    return ask


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
