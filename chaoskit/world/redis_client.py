"""The client's side of a relayed connection: what it sends, and what it is sent."""

import asyncio
import socket
from typing import cast

from chaoskit.wire.resp import Command, Commands

WAITING_BYTES_MAX = 1024 * 1024
"""Above this nothing more is read from a client until its commands are taken."""


class ClientConnection(asyncio.Protocol):
    """A connection from a client; its commands are taken one by one."""

    def __init__(self) -> None:
        self.has_left = False
        """Whether the client has hung up, at least on its sending side."""
        self._commands = Commands()
        self._news = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
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
        self._commands.feed(data)
        if len(self._commands) > WAITING_BYTES_MAX:
            self._transport.pause_reading()
        self.wake()

    def eof_received(self) -> bool:
        """asyncio's part of the deal. True: we may still have something to say."""
        self.hung_up()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's part of the deal."""
        self._writable.set()
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
        """Send to the client, if it is still there."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def wake(self) -> None:
        """Something has changed that `more` may be waiting for."""
        self._news.set()

    def abort(self) -> None:
        """Hang up, without sending what is not sent yet."""
        self._transport.abort()
        self._writable.set()
        self.wake()

    def close(self) -> None:
        """Hang up, once all is sent."""
        self._transport.close()

    def take(self) -> Command | None:
        """The next whole command, if there is one; see `Commands.take`."""
        return self._commands.take()

    async def more(self) -> None:
        """Wait for something new."""
        self._news.clear()
        self._transport.resume_reading()
        await self._news.wait()

    async def drained(self) -> None:
        """Wait until the client has read most of what it was sent."""
        await self._writable.wait()
