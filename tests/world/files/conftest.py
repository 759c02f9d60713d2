"""The files service with real processes on it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from chaoskit.agents import Command, Exit, Life, ProcessLauncher
from chaoskit.gate import Watch
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import Cause
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Fault
from chaoskit.world.files import Files

Make = Callable[..., Any]


class DiskBench:
    """The files service with real processes on it, which a fault really kills."""

    def __init__(
        self, files: Files, make_gate: Make, scenario: Scenario, folder: Path
    ) -> None:
        self.files = files
        self.out, self.err = folder / "out", folder / "err"
        self.process: Life
        self.gate: Any = None
        self.lives = 0
        self._make_gate = make_gate
        self._scenario = scenario
        self._launcher = ProcessLauncher()

    async def trial(self, schedule: str = "", watch: Watch | None = None) -> None:
        """Begin a trial, on an empty disk."""
        self.gate = self._make_gate(
            schedule, watch=watch, end_life=self._end_life, strike=self._strike
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
        return self.gate.crossed()

    def fired(self) -> list[str]:
        return self.gate.fired()

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
    make_gate: Make, make_scenario: Make, tmp_path: Path
) -> Callable[[], AbstractAsyncContextManager[DiskBench]]:
    """Run the files service: ``async with on_disk() as bench``."""

    @asynccontextmanager
    async def running() -> AsyncIterator[DiskBench]:
        scenario = make_scenario(faults=["kill", "powerloss"])
        bench = DiskBench(Files(tmp_path / "files"), make_gate, scenario, tmp_path)
        await bench.files.start()
        try:
            async with asyncio.timeout(60):
                await bench.trial()
                yield bench
        finally:
            await bench.stop()

    return running
