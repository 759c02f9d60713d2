"""The Redis service itself: a relay over a store, life by life."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from pydantic import JsonValue

from chaoskit.gate import Gate
from chaoskit.model.scenario import Scenario
from chaoskit.world.listener import LOOPBACK, Listener
from chaoskit.world.redis.due import SERVICE
from chaoskit.world.redis.relay import Opened, Session
from chaoskit.world.redis.server import find_server
from chaoskit.world.redis.snapshot import Snapshot
from chaoskit.world.redis.store import Store


class Redis:
    """A `Service`, and a `Stateful` one.

    Args:
        folder: where a server of our own may live.
        url: a server to use instead, which must be empty.

    Raises:
        MissingServer: the URL makes no sense.
    """

    name = SERVICE
    variables: ClassVar[Mapping[str, str]] = {
        "REDIS_URL": "a real Redis-protocol server behind a relay"
    }

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.server = find_server(url, folder)
        self.store = Store(self.server)
        self._gate: Gate | None = None
        self._listeners: list[Listener] = []
        self._open: dict[int, tuple[Opened, asyncio.Server, Listener]] = {}
        self._sessions: set[Session] = set()
        self._bugs: list[Exception] = []

    @property
    def version(self) -> str:
        """Name and version of the server, once started, such as ``valkey 8.1.8``."""
        return self.store.version

    async def start(self) -> None:
        """See `Service`.

        Raises:
            MissingServer: there is no server to be had, or not this one.
        """
        await self.store.start()
        self._listeners = [Listener()]

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """See `Service`.

        Raises:
            MissingServer: a server that was given cannot suffer what is due.
        """
        await self._close_all()
        await self._all_ended()
        self._gate = gate
        await self.store.reset(gate, scenario)

    async def open(self, life: int) -> dict[str, str]:
        """See `Service`. The address is that of the last life, if that is over."""
        assert self._gate is not None, "reset comes first"
        opened, listener = Opened(life, self._gate), self._free_listener()
        server = await asyncio.get_running_loop().create_server(
            lambda: Session(opened, self), sock=listener.renew()
        )
        self._open[life] = opened, server, listener
        return {"REDIS_URL": f"redis://{LOOPBACK}:{listener.port}/0"}

    async def close(self, life: int) -> None:
        """See `Service`.

        Once it returns the server does nothing more for the life, except for messages
        that are at the gate: wait for those with `Gate.settled`.
        """
        if life not in self._open:
            return
        opened, server, _ = self._open.pop(life)
        opened.is_closed = True
        server.close()
        await self._cut([each for each in self._sessions if each.opened is opened])
        if self._bugs:
            raise self._bugs.pop()

    async def stop(self) -> None:
        """See `Service`."""
        try:
            await self._close_all()
        finally:
            await self.store.stop()
            for session in self._sessions:
                session.upstream.abort()
            await self._all_ended()
            for listener in self._listeners:
                listener.close()
            self._listeners = []

    async def snapshot(self) -> Snapshot:
        """See `Stateful`."""
        return await self.store.state.snapshot()

    async def restore(self, snapshot: object) -> None:
        """See `Stateful`."""
        assert isinstance(snapshot, Snapshot)
        await self.store.state.restore(snapshot)

    async def view(self) -> JsonValue:
        """See `Stateful`; for its form see `chaoskit.world.redis.state`."""
        return await self.store.state.view()

    def began(self, session: Session) -> None:
        """See `Host`."""
        self._sessions.add(session)

    def ended(self, session: Session, bug: Exception | None) -> None:
        """See `Host`."""
        self._sessions.discard(session)
        if bug is not None:
            self._bugs.append(bug)

    def _free_listener(self) -> Listener:
        """The first one that no life uses; a life beside another has its own port."""
        used = [listener for _, _, listener in self._open.values()]
        for listener in self._listeners:
            if listener not in used:
                return listener
        self._listeners.append(Listener())
        return self._listeners[-1]

    async def _cut(self, sessions: list[Session]) -> None:
        for session in sessions:
            session.abort()
        idle = [session for session in sessions if not session.crossing]
        with suppress(ConnectionError):
            await self.store.hang_up(*(session.upstream.known for session in idle))
        if idle:
            await asyncio.wait([session.task for session in idle])

    async def _close_all(self) -> None:
        for life in tuple(self._open):
            await self.close(life)

    async def _all_ended(self) -> None:
        if self._sessions:
            await asyncio.wait([session.task for session in self._sessions])
