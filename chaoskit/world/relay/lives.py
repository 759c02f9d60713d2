"""The lives that may connect to a relayed service, and their sessions."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

from chaoskit.gate import Gate
from chaoskit.world.listener import LifePort
from chaoskit.world.relay.session import Opened, Session

Relayed = TypeVar("Relayed", bound=Session)


class Lives(Generic[Relayed]):
    """All that are open, on one port for the whole campaign.

    ``cut`` ends sessions of a life that is closed; it may leave those that have a
    message at the gate.
    """

    def __init__(self, cut: Callable[[list[Relayed]], Awaitable[None]]) -> None:
        self.sessions: set[Relayed] = set()
        self._cut = cut
        self._open: dict[int, Opened] = {}
        self._port: LifePort | None = None
        self._bugs: list[Exception] = []

    @property
    def any_open(self) -> bool:
        """Whether a life may connect."""
        return bool(self._open)

    async def open(
        self, life: int, gate: Gate, serve: Callable[[Opened], Relayed]
    ) -> int:
        """Serve a life's connections; returns the port."""
        self._port = port = self._port or LifePort()
        opened = Opened(life, gate)
        await port.open(life, lambda: serve(opened), gate.whose)
        self._open[life] = opened
        return port.port

    async def close(self, life: int) -> None:
        """Take no more connections of a life, and cut the ones it has.

        An error of ours that has ended one of them is raised.
        """
        opened = self._open.pop(life, None)
        if opened is None:
            return
        assert self._port is not None
        opened.is_closed = True
        self._port.close(life)
        await self._cut([each for each in self.sessions if each.opened is opened])
        if self._bugs:
            raise self._bugs.pop()

    async def close_all(self) -> None:
        """Close every life that is open."""
        for life in tuple(self._open):
            await self.close(life)

    async def over(self, sessions: Iterable[Relayed] | None = None) -> None:
        """Wait until sessions are over; by default all of them."""
        tasks = [s.task for s in (self.sessions if sessions is None else sessions)]
        if tasks:
            await asyncio.wait(tasks)

    async def stop(self) -> None:
        """End what is left, and give the port back."""
        for session in self.sessions:
            session.upstream.abort()
        await self.over()
        if self._port is not None:
            self._port.stop()
            self._port = None

    def began(self, session: Relayed) -> None:
        """See `Register`."""
        self.sessions.add(session)

    def ended(self, session: Relayed, bug: Exception | None) -> None:
        """See `Register`."""
        self.sessions.discard(session)
        if bug is not None:
            self._bugs.append(bug)
