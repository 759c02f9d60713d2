"""One client's connection to a relayed service, from its first byte to its last."""

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

from chaoskit.gate import Dropped, Gate
from chaoskit.world.relay.client import ClientConnection, Inbox
from chaoskit.world.relay.upstream import Upstream


@dataclass
class Opened:
    """A life that may connect, until it is closed."""

    life: int
    gate: Gate
    is_closed: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be begun for it."""
        return self.is_closed or self.gate.is_over(self.life)


class Register(Protocol):
    """Where it is kept which sessions there are."""

    def began(self, session: Any, /) -> None:
        """A client has connected."""

    def ended(self, session: Any, bug: Exception | None, /) -> None:
        """The session is over; an error of ours may have ended it."""


class Session(ClientConnection, ABC):
    """What becomes of a client's messages is said by who inherits."""

    upstream: Upstream[Any]
    task: asyncio.Task[None]

    def __init__(self, opened: Opened, register: Register, inbox: Inbox) -> None:
        super().__init__(inbox)
        self.opened = opened
        self._register = register

    @abstractmethod
    async def converse(self) -> None:
        """Carry out what the client says, until it or the server has left.

        Raises:
            Dropped: the connection is to be reset.
            OSError: the server has closed its connection, so that this one closes too.
        """

    @abstractmethod
    async def leave(self) -> None:
        """End the connection to the server, and then the client's."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's part of the deal."""
        super().connection_made(transport)
        if self.opened.is_over:  # accepted in the last moment before the end
            self.abort()
            return
        self._register.began(self)
        self.task = asyncio.get_running_loop().create_task(self._live())

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's part of the deal: nobody is left to be too slow."""
        super().connection_lost(exc)
        self.upstream.resume()

    def pause_writing(self) -> None:
        """asyncio's part of the deal: the client reads too slowly."""
        super().pause_writing()
        self.upstream.pause()

    def resume_writing(self) -> None:
        """asyncio's part of the deal."""
        super().resume_writing()
        self.upstream.resume()

    async def _live(self) -> None:
        bug: Exception | None = None
        try:
            await self.converse()
        except Dropped:
            self.abort()  # with a reset
        except OSError:
            pass  # the server has closed the connection: do as it does
        except Exception as error:
            bug = error
        await self.leave()
        self._register.ended(self, bug)
