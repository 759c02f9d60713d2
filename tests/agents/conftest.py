"""A stage for real processes: small Python agents that tell the test what they did.

They speak through a datagram socket that the test owns, so that a test waits for an
event, never for time to pass.
"""

import asyncio
import inspect
import itertools
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import chaoskit
from chaoskit.agents import Command, Launcher, ProcessLauncher, linux
from chaoskit.agents.linux import children, ended, look

SECONDS_MAX = 60
_serials = itertools.count()

PRELUDE = """
import json, os, signal, socket, sys, time
def tell(*words):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as post:
        post.sendto(json.dumps(words).encode(), ADDRESS)
def daemonize():
    'Forks twice into a new session; True in the daemon only.'
    if child := os.fork():
        os.waitpid(child, 0)
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    return True
def stay():
    while True:
        signal.pause()
"""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine function, in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), SECONDS_MAX))
    return True


class Stage:
    """Where a test's agents live, write, and speak."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stdout = folder / "stdout"
        self.stderr = folder / "stderr"
        name = f"\0chaoskit-test-{os.getpid()}-{next(_serials)}"
        self._post = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._post.bind(name)
        self._post.setblocking(False)
        self.prelude = f"ADDRESS = {name!r}\n{PRELUDE}"

    def close(self) -> None:
        self._post.close()

    def command(self, *argv: str, env: Mapping[str, str] | None = None) -> Command:
        environment = dict(os.environ) if env is None else env
        return Command(argv, self.folder, environment, self.stdout, self.stderr)

    def agent(self, code: str, env: Mapping[str, str] | None = None) -> Command:
        """A Python program that may `tell(...)`, `daemonize()` and `stay()`."""
        code = self.prelude + inspect.cleandoc(code)
        return self.command(sys.executable, "-S", "-E", "-c", code, env=env)

    def module(self, name: str, code: str) -> None:
        """A module that a warm parent can import."""
        text = self.prelude + inspect.cleandoc(code)
        (self.folder / f"{name}.py").write_text(text)

    async def hear(self) -> Any:
        """What an agent told next."""
        loop = asyncio.get_running_loop()
        return json.loads(await loop.sock_recv(self._post, 65536))

    def child(self, argv: Sequence[str]) -> "subprocess.Popen[bytes]":
        """A process that no launcher started."""
        return subprocess.Popen(argv, start_new_session=True)

    def worker(self, code: str) -> "subprocess.Popen[bytes]":
        """Runs a program of ours."""
        return self.child(self.worker_argv(code))

    def worker_argv(self, code: str) -> list[str]:
        """The command of a program of ours: it has chaoskit, and `tell`."""
        root = str(Path(chaoskit.__file__).parents[1])
        path = f"import sys\nsys.path.insert(0, {root!r})\n"
        code = path + self.prelude + inspect.cleandoc(code)
        return [sys.executable, "-c", code]

    @asynccontextmanager
    async def processes(self) -> AsyncIterator[Launcher]:
        async with closing(ProcessLauncher()) as launcher:
            yield launcher


@asynccontextmanager
async def closing(launcher: Launcher) -> AsyncIterator[Launcher]:
    """Closes a launcher, and sees that no child of it is left, dead or alive."""
    before = children(os.getpid())
    try:
        yield launcher
    finally:
        await launcher.close()
        # Or what other workers of a test leave would come to the test process.
        linux._prctl(linux.PR_SET_CHILD_SUBREAPER, 0)
    assert children(os.getpid()) == before


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


@pytest.fixture
def close_after() -> Any:
    return closing


@pytest.fixture
def is_gone() -> Any:
    """Whether a process is neither alive nor a zombie."""
    return lambda pid: look(pid) is None


@pytest.fixture
def death_of() -> Any:
    """Waits until a process is dead, wherever its parent is."""

    async def wait(pid: int) -> None:
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            await ended(pidfd)
        finally:
            os.close(pidfd)

    return wait
