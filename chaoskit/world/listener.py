"""A port for a whole campaign, with a listening socket of its own for each life.

The address that an agent stores stays true, and no connection passes from one life to
the next: closing a listening socket resets what nobody had accepted on it.

Where a life begins while another is still open (it is paused, or children of it live
on), both share a socket, and each new connection is asked whose it is. A service says
so to its `LifePort`, and serves what it is handed::

    await port.open(life, factory, gate.whose)   # factory() makes a protocol of asyncio
    port.close(life)                             # takes no new connection of it
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from chaoskit.gate import Whose

LOOPBACK = "127.0.0.1"
_BACKLOG = 128
_AT_ONCE = struct.pack("ii", 1, 0)
"""Linger for no time at all (socket(7)): what is unsent is dropped, with a reset."""


class Listener:
    """One port on the loopback interface.

    A socket that is bound and never listens holds the port while no life is open, so
    that nothing else on the machine is given it.
    """

    def __init__(self) -> None:
        self._hold = _bound(0)
        self._current: socket.socket | None = None
        self.port: int = self._hold.getsockname()[1]

    def renew(self) -> socket.socket:
        """A fresh listening socket on the port; the one before it is closed.

        Whoever serves on a socket stops serving before it asks for the next.
        """
        fresh = _bound(self.port)
        # Not listening yet: some kernels may hand a closing queue on to a neighbour.
        self.drop()
        fresh.listen(_BACKLOG)
        self._current = fresh
        return fresh

    def drop(self) -> None:
        """Close the listening socket; connections are refused until the next one."""
        if self._current is not None:
            self._current.close()
            self._current = None

    def close(self) -> None:
        """Give the port back."""
        self.drop()
        self._hold.close()


def _bound(port: int) -> socket.socket:
    # Named as TCP, or asyncio does not know that it may turn off Nagle's delay: a small
    # write would wait for the peer, and be lost where the connection is reset.
    fresh = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    fresh.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    fresh.bind((LOOPBACK, port))
    return fresh


def reset(transport: asyncio.BaseTransport | None) -> None:
    """Cut a connection with a reset: the peer can tell it from an ordinary end.

    What was written before is lost where the peer's system has not taken it in.
    """
    if not isinstance(transport, asyncio.Transport):
        return
    if (sock := transport.get_extra_info("socket")) is not None:
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    transport.abort()


Factory = Callable[[], asyncio.BaseProtocol]
"""Makes the protocol that serves one connection of a life."""


class LifePort:
    """One port, on which each connection is served as that of its life."""

    def __init__(self) -> None:
        self._listener = Listener()
        self._entrance: _Entrance | None = None

    @property
    def port(self) -> int:
        """Its number, the same for the whole campaign."""
        return self._listener.port

    async def open(self, life: int, serve: Factory, whose: Whose | None) -> None:
        """Take connections of a life; without ``whose`` all new ones are its own."""
        if whose is None or self._entrance is None or not self._entrance.lives:
            await self._renew(whose)
        assert self._entrance is not None
        self._entrance.add(life, serve)

    def close(self, life: int) -> None:
        """Take no more connections of a life."""
        if self._entrance is None:
            return
        self._entrance.lives.pop(life, None)
        if not self._entrance.lives:
            self._entrance.close()
            self._listener.drop()

    def stop(self) -> None:
        """Give the port back."""
        if self._entrance is not None:
            self._entrance.close()
        self._listener.close()

    async def _renew(self, whose: Whose | None) -> None:
        if self._entrance is not None:
            self._entrance.close()
        entrance = _Entrance(whose)
        loop = asyncio.get_running_loop()
        entrance.server = await loop.create_server(
            entrance.arrival, sock=self._listener.renew()
        )
        self._entrance = entrance


@dataclass
class _Entrance:
    """A listening socket, and the lives that connect to it.

    Once a second life has shared it, nothing on it is taken for granted: what is still
    accepted may come from a life that has ended.
    """

    whose: Whose | None
    lives: dict[int, Factory] = field(default_factory=dict)
    server: asyncio.Server | None = None
    _shared: bool = False

    def add(self, life: int, serve: Factory) -> None:
        self._shared = bool(self.lives)
        self.lives[life] = serve

    def arrival(self) -> asyncio.BaseProtocol:
        if self._shared or not self.lives:
            return _Stranger(self)
        (serve,) = self.lives.values()
        return serve()

    def factory_for(self, transport: asyncio.BaseTransport) -> Factory | None:
        client = transport.get_extra_info("peername")
        if not self._shared or self.whose is None or client is None:
            return None
        life = self.whose.connection(client, transport.get_extra_info("sockname"))
        return None if life is None else self.lives.get(life)

    def close(self) -> None:
        if self.server is not None:
            self.server.close()


class _Stranger(asyncio.Protocol):
    """A connection until it is known whose it is; one that is nobody's is reset."""

    def __init__(self, entrance: _Entrance) -> None:
        self._entrance = entrance

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        serve = self._entrance.factory_for(transport)
        if serve is None:
            reset(transport)
            return
        protocol = serve()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
