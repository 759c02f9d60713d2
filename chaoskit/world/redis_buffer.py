"""Reads into one buffer for all connections.

asyncio makes a buffer of 256 KiB for each read of an ordinary protocol, which costs more
than the rest of a read: 13 microseconds a time, against 2.
"""

import asyncio

_BUFFER = memoryview(bytearray(256 * 1024))
"""What is read is taken out in the same turn of the loop, before anybody else reads."""


class Buffered(asyncio.BufferedProtocol):
    """A protocol that is written like an ordinary one, with `data_received`."""

    def data_received(self, data: bytes) -> None:
        """Take in what was read."""
        raise NotImplementedError

    def get_buffer(self, sizehint: int) -> memoryview:
        """asyncio's part of the deal."""
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        """asyncio's part of the deal."""
        self.data_received(bytes(_BUFFER[:nbytes]))
