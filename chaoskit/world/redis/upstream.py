"""The connection to the real Redis server that stands in for one client's."""

import asyncio
from typing import Protocol, cast

from chaoskit.wire.redis.dialogue import Dialogue, Step
from chaoskit.wire.redis.resp_replies import Replies
from chaoskit.world.redis.prompt import Prompt
from chaoskit.world.redis.store import Client


class Receiver(Protocol):
    """Whom the server's messages are for."""

    def send(self, data: bytes, /) -> None:
        """Messages that pass at once."""

    def wake(self) -> None:
        """The connection is lost."""


class Upstream(asyncio.Protocol):
    """The connection to the server that stands in for a client's.

    By what it is ``known`` the server can be told to end the connection.
    """

    def __init__(self, client: Receiver, dialogue: Dialogue) -> None:
        self.known: Client | None = None
        self._client = client
        self._dialogue = dialogue
        self._replies = Replies()
        self._waiting: _Waiting | None = None
        self._transport: asyncio.Transport | None = None
        self._behind: list[bytes] | None = None

    @property
    def is_lost(self) -> bool:
        """Whether it is closed, by the server or by us."""
        return self._transport is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's part of the deal."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """asyncio's part of the deal."""
        waiting = self._waiting
        passing = [
            message for message in self._replies.feed(data) if self._pass(message)
        ]
        if passing:
            self._client.send(b"".join(passing))
        if waiting is not None and self._waiting is None:
            # The last thing to do here: whoever waits goes on at once.
            waiting.over.set(waiting.replies)

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's part of the deal."""
        self._transport = None
        if self._waiting is not None:
            self._waiting.fail()
        self._client.wake()

    async def ask(
        self, step: Step, raw: bytes, replies: int, *, passing: bool
    ) -> list[bytes]:
        """Send bytes and wait for what answers them; returns the replies.

        ``passing``: each goes to the client as it comes, and the last one is returned.
        Where they are withheld, so is what comes behind them, until `release`: a cache
        must not hear that a value has changed before it hears the value.

        Raises:
            ConnectionError: the connection is lost.
        """
        if self._transport is None:
            raise ConnectionError("the server closed the connection")
        self._waiting = waiting = _Waiting(step, replies, passing=passing)
        self._transport.resume_reading()
        self._transport.write(raw)
        return await waiting.over

    def release(self) -> None:
        """What was withheld is on its way: send what the server pushed behind it."""
        behind, self._behind = self._behind, None
        if behind:
            self._client.send(b"".join(behind))

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
        if self._behind is not None:
            self._behind.append(message)
            return False
        if waiting is None or not self._dialogue.answers(waiting.step, message):
            return True
        if waiting.took(message):
            self._waiting = None
            if not waiting.passing:
                self._behind = []
        return waiting.passing


class _Waiting:
    """Replies that are waited for."""

    def __init__(self, step: Step, replies: int, *, passing: bool) -> None:
        self.step = step
        self.passing = passing
        self.replies: list[bytes] = []
        self.over: Prompt[list[bytes]] = Prompt()
        self._left = replies

    def took(self, reply: bytes) -> bool:
        """Count a reply; True if it was the last one."""
        self._left -= 1
        # An error to a subscription stands for all of its confirmations.
        if self.passing:
            self.replies.clear()
        self.replies.append(reply)
        return not self._left or bool(self.step.confirmation and reply[:1] == b"-")

    def fail(self) -> None:
        """No more will come."""
        self.over.fail(ConnectionError("the server closed the connection"))
