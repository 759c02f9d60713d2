"""A life's processes: the root, its group, and whatever came out of them.

They are found below this process, which is a subreaper: a descendant whose parent has
ended becomes our child. A child of ours is of the life if it has the root's session or
the life's mark, and so is all below it. Nobody else's processes are ever touched.

The root is reaped last. Until then its pid can name nothing else, so that a signal to
its group, and a look at who is in its session, are safe without further care. Where it
is killed alone it is reaped at once, as a parent would; its descendants are then told
by session and mark as before, and signalled one by one.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress

from chaoskit.agents.connections import holds, inode_of
from chaoskit.agents.life import Endpoint, Exit
from chaoskit.agents.linux import (
    Process,
    below,
    children,
    ended,
    held,
    is_running,
    look,
    reap,
    reap_child,
    see_off,
    send,
)
from chaoskit.agents.mark import mark_of


class Family:
    """A `Life`. Make it in the running loop, of a child of this process."""

    def __init__(self, pid: int, mark: int) -> None:
        self.pid = pid
        self._mark = mark
        self._pidfd = os.pidfd_open(pid)
        self._root = look(pid)
        self._orphans: set[Process] = set()
        self._alone = False
        self._root_ended = False
        self._root_exit: asyncio.Future[Exit] = asyncio.Future()
        self._told_to_end = asyncio.Event()
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
        self._told_to_end.set()
        if self.ending.done():
            return
        others = list(self._others())
        if not self._root_exit.done():
            # The root before its children, lest it acts on seeing them die.
            os.killpg(self.pid, signal.SIGKILL)
        for other in others:
            self._fell(other)

    async def kill_one(self) -> Exit:
        """See `Life.kill_one`."""
        if self._root_ended or self._told_to_end.is_set():
            return await self.wait()
        self._alone = True
        signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        return await asyncio.shield(self._root_exit)

    async def signal(self, number: int) -> None:
        """See `Life.signal`."""
        if self._root_ended:
            for process in self._others():
                send(process, number)
        else:
            os.killpg(self.pid, number)

    async def pause(self) -> None:
        """See `Life.pause`.

        One that is inside a system call, a read of a slow disk say, stops before it
        comes out of it: it counts as stopped, as it can do nothing more.
        """
        told: set[Process] = set()
        while new := {each for each in self._all() if not each.zombie} - told:
            for process in new:
                send(process, signal.SIGSTOP)
            told |= new
            # On another processor, for some microseconds yet.
            while any(is_running(process.pid) for process in told):  # noqa: ASYNC110
                await asyncio.sleep(0)

    async def go_on(self) -> None:
        """See `Life.go_on`."""
        for process in self._all():
            send(process, signal.SIGCONT)

    async def written(self) -> None:
        """See `Life.written`: it writes to its files itself."""

    def is_peer(self, client: Endpoint, server: Endpoint) -> bool:
        """See `Life.is_peer`."""
        inode = inode_of(client, server)
        return inode is not None and holds(self.pids(), inode)

    def pids(self) -> tuple[int, ...]:
        """See `Life.pids`."""
        return tuple(process.pid for process in self._all())

    def _all(self) -> Iterator[Process]:
        root = look(self.pid)
        if root is not None and root == self._root:
            yield root
        yield from self._others()

    async def _end(self) -> Exit:
        try:
            await ended(self._pidfd)
            self._root_ended = True
            if self._alone:
                self._root_exit.set_result(await self._exit_alone())
                await self._told_to_end.wait()
            while await self._end_others():
                pass
            if self._alone:
                return self._root_exit.result()
            return await self._exit()
        finally:
            os.close(self._pidfd)

    async def _exit_alone(self) -> Exit:
        left = {process for process in self._others() if not process.zombie}
        self._orphans |= left
        return await self._exit()

    async def _exit(self) -> Exit:
        # A debugger is told first, and nothing tells us when it knows.
        while (end := reap(self._pidfd)) is None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        by_itself = end.si_code == os.CLD_EXITED
        return Exit(
            code=end.si_status if by_itself else None,
            signal=None if by_itself else end.si_status,
            orphans=len(self._orphans),
        )

    async def _end_others(self) -> bool:
        """One round; False once a round finds nobody.

        What a life leaves behind comes to nobody but us. Processes that keep forking
        are outrun: of our children only those that are new are looked at, and the dead
        go at once, so that to strike one takes less than to fork one, however many
        there were.
        """
        known, felled, died = {self.pid}, list[Process](), False
        while new := [pid for pid in children(os.getpid()) if pid not in known]:
            for pid in reversed(new):
                is_ours = self._owns(pid)
                if is_ours and reap_child(pid):
                    died = True
                    continue
                known.add(pid)
                if is_ours and (process := look(pid)):
                    died |= process.zombie  # just now: the next round reaps it
                    felled += filter(self._fell, (process, *below(pid)))
            await asyncio.sleep(0)
        for other in felled:
            await see_off(other)
        return bool(felled) or died

    def _others(self) -> Iterator[Process]:
        """The newest first: those that flee are at the end of the list of children.

        The dead among our children go at once, lest a life that is long makes us slow.
        """
        for child in reversed(children(os.getpid())):
            if child == self.pid and not self._root_exit.done():
                yield from below(child)
            elif self._owns(child) and not reap_child(child):
                if process := look(child):
                    yield process
                yield from below(child)

    def _owns(self, pid: int) -> bool:
        if pid == self.pid:  # another's, which got the number of a root that is reaped
            return False
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
