"""Where lives come from: has a zygote fork them, and keeps them until they end.

One life is always forked ahead and waits for its command, since a fork of a big parent
takes milliseconds.
"""

import asyncio
import json
import socket
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from chaoskit.agents.family import Family
from chaoskit.agents.life import Command, LaunchError
from chaoskit.agents.mark import CAMPAIGN_VARIABLE, fresh_mark
from chaoskit.agents.parent import Origin, Parent, hear, start_parent, words
from chaoskit.agents.refusals import died, not_started


@dataclass(frozen=True)
class _Newborn:
    """A life that waits for the word to go on."""

    family: Family
    line: socket.socket
    inherit: tuple[int, ...]

    def release(self) -> dict[str, Any]:
        """Lets it run. Empty, or why it could not.

        Blocks until it runs, which takes one exec, so that its handle is known before
        anything that it does is seen.
        """
        self.line.settimeout(None)
        try:
            socket.send_fds(self.line, [b"\n"], self.inherit)
            with self.line.makefile("rb") as lines:
                return words(lines.readline())
        except ConnectionError:
            return {}

    def abandon(self) -> None:
        """It never runs: it exits as the line closes, or by the signal."""
        self.line.close()
        self.family.strike()


class Nursery:
    """The engine of both launchers."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._parent: asyncio.Task[Parent] | None = None
        self._spare: socket.socket | None = None
        self._births: set[asyncio.Task[_Newborn]] = set()
        self._lives: set[Family] = set()

    async def warm(self) -> Parent:
        """See `Launcher.warm`. What was raised once is raised at every call."""
        if self._parent is None:
            self._parent = asyncio.create_task(start_parent(self._origin))
        return await asyncio.shield(self._parent)

    async def start(self, command: Command) -> Family:
        """See `Launcher.start`."""
        if not command.argv:
            raise LaunchError("the command is empty; expected a program to start")
        birth = asyncio.create_task(self._bear(await self.warm(), command))
        self._births.add(birth)
        birth.add_done_callback(self._births.discard)
        try:
            newborn = await asyncio.shield(birth)
        except asyncio.CancelledError:
            birth.add_done_callback(_abandon)
            raise
        with newborn.line:
            refusal = newborn.release()
        if refusal:
            await newborn.family.wait()
            raise LaunchError(not_started(command, refusal))
        return newborn.family

    async def close(self) -> None:
        """See `Launcher.close`."""
        parent, self._parent = self._parent, None
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.close()
        if parent is not None:
            parent.cancel()  # does nothing to one that is done
            (ready,) = await asyncio.gather(parent, return_exceptions=True)
            if isinstance(ready, Parent):
                await ready.end()
        await asyncio.gather(*self._births, return_exceptions=True)
        await asyncio.gather(*[life.kill() for life in self._lives])

    async def _bear(self, parent: Parent, command: Command) -> _Newborn:
        mark = fresh_mark(command.env.get(CAMPAIGN_VARIABLE, ""))
        with ExitStack() as on_failure:
            try:
                line = on_failure.enter_context(self._next_line(parent))
            except OSError as error:
                raise LaunchError(died(command, parent.last_lines())) from error
            reply = await _ask(line, command, mark)
            if not reply:
                raise LaunchError(died(command, parent.last_lines()))
            family = self._adopt(reply["pid"], mark) if "pid" in reply else None
            if family is None or "step" in reply:
                if family is not None:
                    await family.wait()
                raise LaunchError(not_started(command, reply))
            on_failure.pop_all()
        return _Newborn(family, line, tuple(command.inherit.values()))

    def _next_line(self, parent: Parent) -> socket.socket:
        """The line to a life that is forked already; has the one after it forked."""
        line, self._spare = self._spare or parent.pass_line(), None
        try:
            self._spare = parent.pass_line()
        except OSError:
            line.close()
            raise
        return line

    def _adopt(self, pid: int, mark: int) -> Family:
        family = Family(pid, mark)
        self._lives.add(family)
        family.ending.add_done_callback(lambda _: self._lives.discard(family))
        return family


def _abandon(birth: asyncio.Task[_Newborn]) -> None:
    if not birth.cancelled() and birth.exception() is None:
        birth.result().abandon()


async def _ask(line: socket.socket, command: Command, mark: int) -> dict[str, Any]:
    """Tells a life what it is to be; its answer, or empty where it has ended."""
    wish = {
        "argv": command.argv,
        "env": dict(command.env),
        "cwd": str(command.cwd),
        "stdout": str(command.stdout),
        "stderr": str(command.stderr),
        "mark": mark,
        "memory": command.memory_bytes,
        "file": command.file_bytes,
        "inherit": list(command.inherit),
    }
    with suppress(ConnectionError):  # it may have said why before it ended
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(line, json.dumps(wish).encode() + b"\n")
    return await hear(line)
