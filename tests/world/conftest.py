"""What tests of services share: a gate without an agent, and a place to serve.

Tests here may be ``async def``; each runs on a fresh event loop of its own.
"""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import aiohttp
import pytest

from chaoskit.gate import FreshNames, Gate, Recorder, Watch
from chaoskit.model.address import Address
from chaoskit.model.history import Cause
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
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
