"""A server that we started: it is waited for, and ends when we do."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil

from chaoskit.world.servers import MissingServer

LOG_LINES = 5
"""How many of its last lines are shown where it did not start."""
TRY_AGAIN_SECONDS = 0.002
LAST_SIGNALS = 5
"""How often a program is asked to end before it is killed with its children."""
LAST_SIGNAL_SECONDS = 2.0

Answer = TypeVar("Answer")
_PR_SET_PDEATHSIG = 1


class ServerProcess:
    """A running program, and the log into which it prints.

    Args:
        command: the program and its words.
        log: a file; what it prints is added at the end.
        last_signal: what ends it when this process dies.
        how: more of what `subprocess.Popen` takes.

    Raises:
        OSError: it cannot be run.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        last_signal: signal.Signals = signal.SIGKILL,
        **how: Any,
    ) -> None:
        self._program = command[0]
        self._log = log
        self._last_signal = last_signal
        with log.open("ab") as printed:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_dies_with(os.getpid(), last_signal),
                **how,
            )

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    async def answer(
        self, ask: Callable[[], Awaitable[Answer | None]], seconds_max: float
    ) -> Answer:
        """What it answers first; servers have no common way to say that they listen.

        ``ask`` gives None where it does not answer yet.

        Raises:
            MissingServer: it does not answer in time, or has ended.
        """
        try:
            async with asyncio.timeout(seconds_max):
                while (answer := await ask()) is None:
                    self._goes_on()
                    await asyncio.sleep(TRY_AGAIN_SECONDS)
                return answer
        except TimeoutError:
            raise self._failed("does not answer") from None

    async def succeed(self, seconds_max: float) -> None:
        """Wait for its end.

        Raises:
            MissingServer: it has failed, or does not end in time.
        """
        try:
            code = self._process.wait(seconds_max)
        except subprocess.TimeoutExpired:
            await self.crash()
            raise self._failed(f"did not end in {seconds_max:g} s") from None
        if code:
            raise self._failed(f"failed with code {code}")

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    async def end(self) -> None:
        """End it as our death would, and wait until it has.

        A program that has only begun may lose a signal, so it is told again.
        """
        for _ in range(LAST_SIGNALS):
            self.signal(self._last_signal)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LAST_SIGNAL_SECONDS)
                return
        await self.crash()

    def kill(self) -> None:
        """End it at once, and wait until it has."""
        self._process.kill()
        self._process.wait()

    async def crash(self) -> None:
        """Kill it with its children at once, so that nobody can tidy up."""
        self.signal(signal.SIGSTOP)  # lest it starts another meanwhile
        watched = list(_opened(self._children()))
        for each in watched:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(each, signal.SIGKILL)
        self.kill()
        for each in watched:
            await _ended(each)

    def _children(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):  # it may just have ended by itself
            return psutil.Process(self.pid).children()
        return []

    def _goes_on(self) -> None:
        code = self._process.poll()
        if code is not None:
            raise self._failed(f"ended at once, with exit code {code}")

    def _failed(self, how: str) -> MissingServer:
        lines = self._log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        end = "\n".join(lines)
        return MissingServer(
            f"{self._program} {how}. Its log, {self._log}, ends with:\n{end}"
        )


def _opened(processes: Iterable[psutil.Process]) -> Iterator[int]:
    for process in processes:
        with suppress(ProcessLookupError):
            yield os.pidfd_open(process.pid)


async def _ended(pidfd: int) -> None:
    """Wait for the end of a process that may not be our child."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(pidfd, over.set)
    await over.wait()
    loop.remove_reader(pidfd)
    # Where orphans become ours, it is ours to bury.
    with suppress(ChildProcessError):
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
    os.close(pidfd)


def _dies_with(parent: int, last: signal.Signals) -> Callable[[], None] | None:
    """What the child does first: ask for a signal when its parent dies, prctl(2)."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)  # looked up here: a forked child should do little

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, last, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask
