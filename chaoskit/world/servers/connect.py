"""Connects a protocol of asyncio to a server, wherever that is."""

import asyncio
from ssl import SSLContext
from typing import TypeVar

Connected = TypeVar("Connected", bound=asyncio.BaseProtocol)


async def to_socket(path: str, protocol: Connected) -> Connected:
    """To a unix socket; returns the protocol."""
    loop = asyncio.get_running_loop()
    await loop.create_unix_connection(lambda: protocol, path)
    return protocol


async def to_port(
    host: str, port: int, protocol: Connected, tls: SSLContext | None = None
) -> Connected:
    """To a port of a host; returns the protocol."""
    loop = asyncio.get_running_loop()
    await loop.create_connection(lambda: protocol, host, port, ssl=tls)
    return protocol
