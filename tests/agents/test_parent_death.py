"""A worker that is killed takes its lives along: the kernel sees to it."""

import asyncio
from typing import Any

import pytest

WORKER = """
import asyncio
from pathlib import Path
from chaoskit.agents import Command, ForkLauncher, ProcessLauncher
here = Path({folder!r})
async def main():
    launcher = {launcher}
    command = Command({argv!r}, here, dict(os.environ), here / "out", here / "err")
    life = await launcher.start(command)
    parent = await launcher._nursery.warm()
    tell(parent.family.pid)
    await life.wait()
asyncio.run(main())
"""
LAUNCHERS = {
    "process": "ProcessLauncher()",
    "fork": "ForkLauncher(sys.executable, (), 'agent:run', here, dict(os.environ))",
}


@pytest.mark.parametrize("kind", LAUNCHERS)
async def test_lives_and_zygote_die_with_their_worker(
    stage: Any, death_of: Any, kind: str
) -> None:
    stage.module("agent", "def run(): tell(os.getpid()); stay()")
    argv = stage.agent("tell(os.getpid()); stay()").argv
    code = WORKER.format(folder=str(stage.folder), launcher=LAUNCHERS[kind], argv=argv)
    with stage.worker(code) as worker:
        told = [(await stage.hear())[0] for _ in range(2)]
        deaths = asyncio.gather(*map(death_of, told))
        worker.kill()
        await deaths
