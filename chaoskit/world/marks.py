"""The `marks` service: crossings that only the agent can see.

The variable ``CHAOSKIT_MARK_FD`` holds the number of a file descriptor, which the agent
inherits. It writes a name and a line's end, and reads one byte: the operation ``mark``,
its key the name. `chaoskit.mark` does that in Python; its docstring has the lines for
other languages. A name may have 200 bytes at most.

The only edge is ``before``: the mark is made and not answered. A mark changes nothing,
so that nothing could be told from a second edge, and its kills would all be made twice.

The descriptor is one end of a pair of sockets that belongs to the life: whatever of its
processes uses it, the mark is that life's. Where an agent runs in a container there are
no marks, since a container inherits no descriptor: the variable is not set there, and
`chaoskit.mark` does nothing.
"""

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from chaoskit.gate import Dropped, Gate
from chaoskit.mark import VARIABLE
from chaoskit.model.address import Operation
from chaoskit.model.scenario import Scenario

NAME_BYTES_MAX = 200
_ANSWER = b"\n"


@dataclass(frozen=True)
class _Line:
    """What connects a life: the agent's end, and the task that listens at ours."""

    theirs: socket.socket
    ours: socket.socket
    listener: "asyncio.Task[None]"


class Marks:
    """See the module's docstring. One per worker process."""

    name = "marks"
    variables: ClassVar[Mapping[str, str]] = {
        VARIABLE: "optional; write `NAME\\n`, read one byte back: a mark"
    }

    def __init__(self) -> None:
        self._gate: Gate | None = None
        self._lines: dict[int, _Line] = {}
        self._cut: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Nothing to make ready."""

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """From now on marks cross this gate."""
        del scenario
        await self.stop()
        self._gate = gate

    async def open(self, life: int) -> dict[str, str]:
        """A line for a life; its variable is named by `inherited`."""
        assert self._gate is not None, "reset comes first"
        theirs, ours = socket.socketpair()
        ours.setblocking(False)
        listener = asyncio.create_task(_listen(life, self._gate, ours))
        self._lines[life] = _Line(theirs, ours, listener)
        return {}

    def inherited(self, life: int) -> dict[str, int]:
        """The agent's end of its line."""
        return {VARIABLE: self._lines[life].theirs.fileno()}

    async def close(self, life: int) -> None:
        """Cut the line of a life; a mark that is at the gate stays there."""
        line = self._lines.pop(life, None)
        if line is None:
            return
        self._cut.add(line.listener)
        line.theirs.close()
        with suppress(OSError):  # closed already, where a fault ended the life
            line.ours.shutdown(socket.SHUT_RDWR)

    async def stop(self) -> None:
        """Cut every line, and wait until nobody listens any more."""
        for life in tuple(self._lines):
            await self.close(life)
        cut, self._cut = self._cut, set()
        await asyncio.gather(*cut)


async def _listen(life: int, gate: Gate, line: socket.socket) -> None:
    """Takes a life's marks one by one, until its line is cut."""
    loop = asyncio.get_running_loop()
    heard = b""
    with line, suppress(Dropped, ConnectionError):
        while more := await loop.sock_recv(line, NAME_BYTES_MAX + 1):
            heard += more
            while b"\n" in heard:
                name, _, heard = heard.partition(b"\n")
                await _cross(life, gate, name)
                await loop.sock_sendall(line, _ANSWER)
            if len(heard) > NAME_BYTES_MAX:
                return  # no mark


async def _cross(life: int, gate: Gate, name: bytes) -> None:
    key = name[:NAME_BYTES_MAX].decode(errors="backslashreplace")
    await gate.pass_by(gate.arrive(life, Operation("marks", "mark", key)))
