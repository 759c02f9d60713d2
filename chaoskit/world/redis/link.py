"""Our own connection to a Redis server: commands out, values back, many at a time."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, cast

import hiredis

from chaoskit.world.servers.connect import Connected

Part = bytes | str | int
Command = Sequence[Part]
Refusal = hiredis.ReplyError

_NOTHING = object()


class Link(asyncio.Protocol):
    """A connection that speaks RESP2. Each `ask` is one write and stays together."""

    def __init__(self) -> None:
        self._reader = hiredis.Reader(notEnoughData=_NOTHING)
        self._asked: deque[_Question] = deque()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's part of the deal."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """asyncio's part of the deal."""
        self._reader.feed(data)
        try:
            while self._asked and (value := self._reader.gets()) is not _NOTHING:
                if self._asked[0].take(value):
                    self._asked.popleft()
        except hiredis.ProtocolError:  # whoever that is, it is no Redis server
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's part of the deal."""
        self._transport = None
        for question in self._asked:
            question.fail(exc)
        self._asked.clear()

    async def ask(self, *commands: Command) -> list[Any]:
        """The values that answer the commands, in order.

        An error that a command gets is among the values, a `Refusal`.

        Raises:
            ConnectionError: the server went away.
        """
        if self._transport is None:
            raise ConnectionError("the connection to the Redis server is closed")
        if not commands:
            return []
        question = _Question(len(commands))
        self._asked.append(question)
        self._transport.write(packed(*commands))
        return await question.answers

    async def do(self, *commands: Command) -> list[Any]:
        """As `ask`, where an error is not expected.

        Raises:
            Refusal: the first error among the values.
        """
        values = await self.ask(*commands)
        for value in values:
            if isinstance(value, Refusal):
                raise value
        return values

    def close(self) -> None:
        """Hang up, at once."""
        if self._transport is not None:
            self._transport.abort()


class _Question:
    """Commands that were sent together, and what has come back so far."""

    def __init__(self, commands: int) -> None:
        self.answers: asyncio.Future[list[Any]]
        self.answers = asyncio.get_running_loop().create_future()
        self._left = commands
        self._values: list[Any] = []

    def take(self, value: object) -> bool:
        """Take in one value; True if it was the last one."""
        self._values.append(value)
        self._left -= 1
        if not self._left and not self.answers.done():
            self.answers.set_result(self._values)
        return not self._left

    def fail(self, cause: Exception | None) -> None:
        """No more will come."""
        if not self.answers.done():
            gone = ConnectionError("the Redis server closed the connection")
            gone.__cause__ = cause
            self.answers.set_exception(gone)


class Connector(Protocol):
    """Where a server is: connects a protocol to it, as asyncio's loop would."""

    login: tuple[Command, ...]
    """What has to be said first on a new connection."""

    async def connect(self, protocol: Connected) -> Connected:
        """The protocol, connected; OSError where nobody answers."""


async def link(server: Connector) -> Link:
    """A new connection to a server, logged in.

    Raises:
        OSError: nobody answers there.
        Refusal: it does not let us in.
    """
    made = await server.connect(Link())
    try:
        await made.do(*server.login, ("PING",))
    except BaseException:
        made.close()
        raise
    return made


def packed(*commands: Command) -> bytes:
    """The bytes of the commands."""
    each: Iterable[tuple[Any, ...]] = map(tuple, commands)
    return b"".join(map(hiredis.pack_command, each))
