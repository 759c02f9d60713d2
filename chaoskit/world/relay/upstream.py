"""The connection to the real server that stands in for one client's."""

import asyncio
from typing import Generic, Protocol, TypeVar, cast

from chaoskit.world.relay.prompt import Prompt


class Receiver(Protocol):
    """Whom the server's messages are for."""

    def send(self, data: bytes, /) -> None:
        """Messages that pass at once."""

    def wake(self) -> None:
        """The connection is lost."""


class Waiting(Protocol):
    """An answer that is waited for; ``passing``: it goes to the client as it comes."""

    passing: bool
    over: Prompt[None]


Awaited = TypeVar("Awaited", bound=Waiting)


class Upstream(asyncio.Protocol, Generic[Awaited]):
    """See the module's docstring; what the server sends is read by who inherits."""

    def __init__(self, client: Receiver) -> None:
        self._client = client
        self._waiting: Awaited | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def is_lost(self) -> bool:
        """Whether it is closed, by the server or by us."""
        return self._transport is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's part of the deal."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's part of the deal."""
        self._transport = None
        if self._waiting is not None:
            self._waiting.over.fail(_gone())
        self._client.wake()

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

    def _reading(self) -> asyncio.Transport:
        """The transport, which reads: something is about to be asked.

        Raises:
            ConnectionError: the connection is lost.
        """
        if self._transport is None:
            raise _gone()
        self._transport.resume_reading()
        return self._transport


def _gone() -> ConnectionError:
    return ConnectionError("the server closed the connection")
