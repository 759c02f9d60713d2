"""The connection to the real Redis server that stands in for one client's."""

import asyncio
from typing import Protocol, cast

from chaoskit.wire.redis_dialogue import Dialogue, Step
from chaoskit.wire.resp_replies import Replies


class Client(Protocol):
    """Whom the server's messages are for."""

    def send(self, data: bytes, /) -> None:
        """Messages that pass at once."""

    def wake(self) -> None:
        """The connection is lost."""


class Upstream(asyncio.Protocol):
    """The connection to the server that stands in for a client's.

    ``number`` is the server's own, by which it can be told to end the connection.
    """

    def __init__(self, client: "Client", dialogue: Dialogue) -> None:
        self.number = 0
        self._client = client
        self._dialogue = dialogue
        self._replies = Replies()
        self._waiting: _Waiting | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def is_lost(self) -> bool:
        """Whether it is closed, by the server or by us."""
        return self._transport is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's part of the deal."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """asyncio's part of the deal."""
        passing = [
            message for message in self._replies.feed(data) if self._pass(message)
        ]
        if passing:
            self._client.send(b"".join(passing))

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's part of the deal."""
        self._transport = None
        if self._waiting is not None:
            self._waiting.fail()
        self._client.wake()

    async def ask(
        self, step: Step, raw: bytes, replies: int, *, passing: bool
    ) -> bytes:
        """Send bytes and wait for what answers them; returns the last reply.

        ``passing``: each reply goes to the client as it comes.

        Raises:
            ConnectionError: the connection is lost.
        """
        if self._transport is None:
            raise ConnectionError("the server closed the connection")
        self._waiting = waiting = _Waiting(step, replies, passing=passing)
        self._transport.resume_reading()
        self._transport.write(raw)
        return await waiting.last

    def tell(self, raw: bytes) -> None:
        """Send bytes that nothing answers."""
        if self._transport is not None:
            self._transport.write(raw)

    def pause(self) -> None:
        """Read nothing until `resume`, as the client has enough to read.

        What the gate waits for is read all the same: a client may hold up itself, and
        nobody else.
        """
        if self._transport is not None and (not self._waiting or self._waiting.passing):
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if self._transport is not None:
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close it, at once."""
        if self._transport is not None:
            self._transport.abort()

    def _pass(self, message: bytes) -> bool:
        """Take in one message; True if it goes to the client."""
        waiting = self._waiting
        if waiting is None or not self._dialogue.answers(waiting.step, message):
            return True
        if waiting.took(message):
            self._waiting = None
        return waiting.passing


class _Waiting:
    """Replies that are waited for."""

    def __init__(self, step: Step, replies: int, *, passing: bool) -> None:
        self.step = step
        self.passing = passing
        self.last: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._left = replies

    def took(self, reply: bytes) -> bool:
        """Count a reply; True if it was the last one."""
        self._left -= 1
        # An error to a subscription stands for all of its confirmations.
        over = not self._left or bool(self.step.confirmation and reply[:1] == b"-")
        if over and not self.last.done():
            self.last.set_result(reply)
        return over

    def fail(self) -> None:
        """No more will come."""
        if not self.last.done():
            self.last.set_exception(ConnectionError("the server closed the connection"))
