"""The client's side of a relayed connection: what it sends, and what it is sent.

Replies that are `post`ed wait for each other as long as more messages are there, as
they do in a server: a pipeline is answered in few packets.
"""

import asyncio
import os
import socket
from typing import Protocol, cast

from chaoskit.world.listener import reset
from chaoskit.world.relay.prompt import Prompt

WAITING_BYTES_MAX = 1024 * 1024
"""Above this nothing more is read from a client until its messages are taken."""
POSTED_BYTES_MAX = 16 * 1024
"""Above this replies are sent, whatever else is there."""


class Inbox(Protocol):
    """What a client has sent, which is taken message by message."""

    def __len__(self) -> int:
        """How many bytes wait to be taken."""

    def feed(self, data: bytes, /) -> None:
        """Take in bytes, as they come."""


class ClientConnection(asyncio.Protocol):
    """A connection from a client; what it sends goes into an inbox."""

    def __init__(self, inbox: Inbox) -> None:
        self.has_left = False
        """Whether the client has hung up, at least on its sending side."""
        self._inbox = inbox
        self._posted = bytearray()
        self._news: Prompt[None] = Prompt()
        self._writable = asyncio.Event()
        self._writable.set()
        self._passing = asyncio.Event()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's part of the deal."""
        self._transport = cast(asyncio.Transport, transport)
        # asyncio forgets this for sockets that were made without a protocol number;
        # the replies of a pipeline would wait for each other, 40 ms a time.
        connection = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        """asyncio's part of the deal."""
        self._inbox.feed(data)
        if len(self._inbox) > WAITING_BYTES_MAX:
            self._transport.pause_reading()
        self.wake()

    def eof_received(self) -> bool:
        """asyncio's part of the deal. True: we may still have something to say."""
        self.hung_up()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's part of the deal."""
        self._writable.set()
        self._passing.set()
        self.hung_up()

    def pause_writing(self) -> None:
        """asyncio's part of the deal: the client reads too slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """asyncio's part of the deal."""
        self._writable.set()

    def hung_up(self) -> None:
        """The client will send nothing more."""
        self.has_left = True
        self.wake()

    def send(self, data: bytes) -> None:
        """Send to the client, if it is still there, after what was posted."""
        if self._posted:
            data = bytes(self._posted) + data
            self._posted.clear()
        if not self._transport.is_closing():
            self._transport.write(data)

    def post(self, data: bytes) -> None:
        """Send, at the latest with the next `flush`."""
        self._posted += data
        if len(self._posted) > POSTED_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        """Send what was posted."""
        if self._posted:
            self.send(b"")

    def wake(self) -> None:
        """Something has changed that `more` may be waiting for."""
        self._news.set(None)

    def abort(self) -> None:
        """Hang up, without sending what is not sent yet."""
        reset(self._transport)
        self._passing.set()
        self._posted.clear()
        self._writable.set()
        self.wake()

    def close(self) -> None:
        """Hang up, once all is sent."""
        self.flush()
        self._transport.close()

    async def more(self) -> None:
        """Wait for something new."""
        self._news = Prompt()
        self._transport.resume_reading()
        await self._news

    async def drained(self) -> None:
        """Wait until the client has read most of what it was sent."""
        if not self._writable.is_set():
            await self._writable.wait()

    async def sent(self) -> None:
        """Wait until all is with the client's system; a reset takes back the rest."""
        self._transport.set_write_buffer_limits(high=0)
        await self.drained()
        self._transport.set_write_buffer_limits()
        if not self._transport.is_closing():
            await self._passed_on(self._transport.get_extra_info("socket"))

    async def _passed_on(self, connection: socket.socket) -> None:
        """Wait until the socket is writable, which means: until nothing is unsent."""
        loop = asyncio.get_running_loop()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 1)
        number = os.dup(connection.fileno())  # the loop lets a socket be used once
        loop.add_writer(number, self._passing.set)
        try:
            self._passing.clear()
            await self._passing.wait()
        finally:
            loop.remove_writer(number)
            os.close(number)
