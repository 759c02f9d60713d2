"""A life in a container: its first process, and all that the kernel ends with it.

The agent is process 1 of a PID namespace. When that dies, by a signal or by itself, the
kernel kills every other process in there before anybody can see it dead
(pid_namespaces(7)): no group or mark is needed, and nobody is left. As the first one it
has no default for signals either: SIGTERM, say, ends only an agent that handles it, in
production too, unless the image brings an init.

Its end is seen by a pidfd, its status comes from the kernel (`pidfd_status.py`). Old
kernels cannot tell, and leave docker's number: 137 may be a kill or an exit, so it is a
signal only where we had sent that signal.
"""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil

from chaoskit.agents.connections import holds, inode_of
from chaoskit.agents.docker.engine import Engine
from chaoskit.agents.docker.output import ContainerOutput
from chaoskit.agents.docker.pidfd_status import code_and_signal, wait_status
from chaoskit.agents.docker.refusals import Refusal
from chaoskit.agents.life import Command, Endpoint, Exit, LaunchError
from chaoskit.agents.linux import ended, has_ended, look
from chaoskit.agents.refusals import in_image

SECONDS_TO_KNOW = 5.0
"""So much later than we, at most, the engine knows that a process has ended."""
SECONDS_BETWEEN_ASKS = 0.02
_BY_SIGNAL = 128


class ContainerLife:
    """A `Life`. Made of a container that has not started; it is started at once.

    Whoever made it has the handle before the agent does anything. That its program
    cannot be run is therefore told by `wait` and `kill`, which raise `LaunchError`.
    `pid` is as this machine counts, and 0 until it runs.
    """

    def __init__(
        self, engine: Engine, container: str, output: ContainerOutput, command: Command
    ) -> None:
        self.container = container
        self.pid = 0
        self._engine = engine
        self._output = output
        self._command = command
        self._pidfd: int | None = None
        self._orphans = 0
        self._sent: set[int] = set()
        self._birth = asyncio.create_task(self._be_born())
        self.ending = asyncio.create_task(self._end())

    async def wait(self) -> Exit:
        """See `Life.wait`."""
        return await asyncio.shield(self.ending)

    async def kill(self) -> Exit:
        """See `Life.kill`."""
        await self._born()
        if not self.ending.done():
            others = (look(pid) for pid in self.pids() if pid != self.pid)
            alive = sum(1 for other in others if other and not other.zombie)
            self._orphans = max(self._orphans, alive)
            await self._send(signal.SIGKILL)
        return await self.wait()

    async def kill_one(self) -> Exit:
        """See `Life.kill_one`: in a container it is `kill`."""
        return await self.kill()

    async def signal(self, number: int) -> None:
        """See `Life.signal`."""
        await self._born()
        if not self.ending.done():
            await self._send(number)

    async def pause(self) -> None:
        """See `Life.pause`: the freezer of its cgroup, which it cannot see."""
        await self._born()
        await self._engine.pause(self.container)

    async def go_on(self) -> None:
        """See `Life.go_on`."""
        await self._born()
        await self._engine.unpause(self.container)

    async def written(self) -> None:
        """See `Life.written`."""
        await self._born()
        if self.pid:
            await self._output.caught_up(self.pid)

    def is_peer(self, client: Endpoint, server: Endpoint) -> bool:
        """See `Life.is_peer`."""
        inode = inode_of(client, server)
        return inode is not None and holds(self.pids(), inode)

    def pids(self) -> tuple[int, ...]:
        """See `Life.pids`."""
        found = (pid for pid in psutil.pids() if _is_in(pid, self.container))
        return tuple(sorted(found, key=lambda pid: (pid != self.pid, pid)))

    async def _born(self) -> None:
        await asyncio.wait([self._birth])

    async def _send(self, number: int) -> None:
        self._sent.add(number)
        await self._engine.kill(self.container, number)

    async def _be_born(self) -> None:
        try:
            await self._engine.start(self.container)
        except Refusal as refusal:
            raise LaunchError(in_image(self._command, refusal.reason)) from refusal
        self.pid = await self._engine.pid(self.container)
        with suppress(ProcessLookupError):
            if self.pid:
                self._pidfd = os.pidfd_open(self.pid)
        if self._pidfd is not None and not self._is_ours(self._pidfd):
            os.close(self._pidfd)  # it has ended, and another one has its number
            self._pidfd = None
        if self._pidfd is None and not await self._ends_at_once():
            await self._engine.kill(self.container, signal.SIGKILL)
            raise LaunchError(_ELSEWHERE)

    def _is_ours(self, pidfd: int) -> bool:
        """Whether that process is the container's; one that has ended is in no cgroup.

        The engine still counted it as there when we had asked for its number.
        """
        return _is_in(self.pid, self.container) or has_ended(pidfd)

    async def _ends_at_once(self) -> bool:
        """Whether the engine comes to know that the container has ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS_TO_KNOW):
                while await self._engine.pid(self.container):  # noqa: ASYNC110
                    await asyncio.sleep(SECONDS_BETWEEN_ASKS)
                return True
        return False

    async def _end(self) -> Exit:
        try:
            await self._birth
            if self._pidfd is not None:
                await ended(self._pidfd)
            number = await self._engine.ended(self.container)
            await self._output.ended()
            return self._exit(number)
        except LaunchError:
            await self._output.abandon()
            raise
        finally:
            if self._pidfd is not None:
                os.close(self._pidfd)

    def _exit(self, number: int) -> Exit:
        code: int | None = number
        by: int | None = None
        status = None if self._pidfd is None else wait_status(self._pidfd)
        if status is not None:
            code, by = code_and_signal(status)
        elif number - _BY_SIGNAL in self._sent:
            code, by = None, number - _BY_SIGNAL
        return Exit(code=code, signal=by, orphans=self._orphans)


_ELSEWHERE = (
    "the engine has started a container whose processes are not to be seen here;"
    " expected an engine of this very machine, and chaoskit outside of any container:"
    " the world of the agent listens on this machine's loopback only"
)


def _is_in(pid: int, container: str) -> bool:
    try:
        return container in Path(f"/proc/{pid}/cgroup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
