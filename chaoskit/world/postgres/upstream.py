"""The connection to the real PostgreSQL that stands in for one client's."""

import asyncio
from struct import unpack_from
from typing import Protocol

from chaoskit.wire.postgres.framing import Replies
from chaoskit.wire.postgres.steps import Answer, Part
from chaoskit.world.relay import upstream as relay
from chaoskit.world.relay.prompt import Prompt

_PUSHED = 65  # A, a notification: may come at any time, and answers nothing
_KEY_DATA = 75  # K


class Client(relay.Receiver, Protocol):
    """Whom the server's messages are for."""

    def told(self, reply: bytes, /) -> None:
        """A message that nothing waited for."""


class Given(Answer):
    """An `Answer` on its way; ``kept`` are its messages where they do not pass."""

    def __init__(self, part: Part, *, passing: bool) -> None:
        super().__init__(part.until)
        self.passing = passing
        self.kept: list[bytes] = []
        self.over: Prompt[None] = Prompt()


class Upstream(relay.Upstream[Given]):
    """See the module's docstring. ``number`` is that of the server's process."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.client = client
        self.number = 0
        self.gone: Prompt[None] = Prompt()
        """Set once the server has let go of the connection, and of all its locks."""
        self._replies = Replies()
        self._is_muted = False
        self._writable = asyncio.Event()
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """asyncio's part of the deal."""
        waiting, replies = self._waiting, self._replies.feed(data)
        if waiting is None or waiting.passing:
            if replies and not self._is_muted:  # first: the client need not wait for us
                self.client.send(b"".join(replies))
            for reply in replies:
                self._take(reply)
        elif pushed := [each for each in replies if self._take(each)]:
            self.client.send(b"".join(pushed))
        if waiting is not None and self._waiting is None:
            waiting.over.set(None)  # last: whoever waits goes on at once

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's part of the deal."""
        super().connection_lost(exc)
        self._writable.set()
        self.gone.set(None)

    def pause_writing(self) -> None:
        """asyncio's part of the deal: the server reads too slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """asyncio's part of the deal."""
        self._writable.set()

    async def ask(self, part: Part, *, passing: bool) -> Given:
        """Send something and wait for its answer.

        ``passing``: each message goes to the client as it comes.

        Raises:
            ConnectionError: the connection is lost.
        """
        if not self._writable.is_set():
            await self._writable.wait()
        transport, given = self._reading(), Given(part, passing=passing)
        if not (part.until.readies or part.until.completions):
            transport.write(part.raw)
            return given
        self._waiting = given
        transport.write(part.raw)
        await given.over
        return given

    def leave(self) -> None:
        """Say no more; the server ends the connection once it has done what it does."""
        if self._transport is not None:
            self._transport.resume_reading()
            self._transport.write_eof()

    def mute(self) -> None:
        """Let nothing pass any more: the server's own last words are not the client's.

        It goes on reading, to see the end of the connection.
        """
        self._is_muted = True
        self.resume()

    def _take(self, reply: bytes) -> bool:
        """Take in one message; True if it goes to the client whatever else does not."""
        tag, waiting = reply[0], self._waiting
        if tag == _PUSHED or waiting is None:
            if tag != _PUSHED:
                self.client.told(reply)
            return not self._is_muted
        if tag == _KEY_DATA:
            (self.number,) = unpack_from(">I", reply, 5)
        if waiting.take(reply):
            self._waiting = None
        if not waiting.passing:
            waiting.kept.append(reply)
        return False
