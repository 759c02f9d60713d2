"""A life's processes: the root, its group, and whatever came out of them.

They are found below this process, which is a subreaper: a descendant whose parent has
ended becomes our child. A child of ours is of the life if it has the root's session or
the life's mark, and so is all below it. Nobody else's processes are ever touched.

The root is reaped last. Until then its pid can name nothing else, so that a signal to
its group, and a look at who is in its session, are safe without further care.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress

from chaoskit.agents.life import Exit
from chaoskit.agents.linux import Process, below, children, ended, held, look
from chaoskit.agents.mark import mark_of


class Family:
    """A `Life`. Make it in the running loop, of a child of this process."""

    def __init__(self, pid: int, mark: int) -> None:
        self.pid = pid
        self._mark = mark
        self._pidfd = os.pidfd_open(pid)
        self._orphans: set[Process] = set()
        self.ending = asyncio.create_task(self._end())

    async def wait(self) -> Exit:
        """See `Life.wait`."""
        return await asyncio.shield(self.ending)

    async def kill(self) -> Exit:
        """See `Life.kill`."""
        self.strike()
        return await self.wait()

    def strike(self) -> None:
        """Signals all of them, now; `ending` then takes its course."""
        if self.ending.done():
            return
        others = list(self._others())
        # The root before its children, lest it acts on seeing them die.
        os.killpg(self.pid, signal.SIGKILL)
        for other in others:
            self._fell(other)

    async def _end(self) -> Exit:
        try:
            await ended(self._pidfd)
            while await self._end_others():
                pass
            return await self._exit()
        finally:
            os.close(self._pidfd)

    async def _exit(self) -> Exit:
        # A debugger is told first, and nothing tells us when it knows.
        while (end := _reap(self._pidfd)) is None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        by_itself = end.si_code == os.CLD_EXITED
        return Exit(
            code=end.si_status if by_itself else None,
            signal=None if by_itself else end.si_status,
            orphans=len(self._orphans),
        )

    async def _end_others(self) -> bool:
        """One round; False once a round finds nobody.

        Processes that keep forking are outrun: each is signalled as it is found, and
        what they leave behind comes to nobody but us.
        """
        felled: list[Process] = []
        rest: list[Process] = []
        for other in self._others():
            (felled if self._fell(other) else rest).append(other)
        reaped = [_bury(other) for other in rest]
        for other in felled:
            await _see_off(other)
        return bool(felled) or any(reaped)

    def _others(self) -> Iterator[Process]:
        """The newest first: those that flee are at the end of the list of children."""
        for child in reversed(children(os.getpid())):
            if child == self.pid:
                yield from below(child)
            elif self._owns(child) and (process := look(child)):
                yield process
                yield from () if process.zombie else below(child)

    def _owns(self, pid: int) -> bool:
        with suppress(ProcessLookupError):
            return os.getsid(pid) == self.pid or mark_of(pid) == self._mark
        return False

    def _fell(self, process: Process) -> bool:
        """Whether it was alive and is killed now.

        One that took another user's rights (a setuid program) is beyond us, and is
        not waited for either.
        """
        if process.zombie:
            return False
        with suppress(ProcessLookupError, PermissionError), held(process) as pidfd:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            self._orphans.add(process)
            return True
        return False


async def _see_off(process: Process) -> None:
    with suppress(ProcessLookupError), held(process) as pidfd:
        await ended(pidfd)
    _bury(process)


def _bury(process: Process) -> bool:
    """Whether it was dead and ours to reap, if it was dead.

    If not ours, its parent dies in the same round and makes it ours in the next.
    """
    with suppress(ProcessLookupError, ChildProcessError), held(process) as pidfd:
        return _reap(pidfd) is not None
    return False


def _reap(pidfd: int) -> os.waitid_result | None:
    return os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
