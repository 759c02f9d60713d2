"""The Redis service itself: a relay over a store, life by life."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import ClassVar

from pydantic import JsonValue

from chaoskit.gate import Gate
from chaoskit.model.scenario import Scenario
from chaoskit.world.listener import LOOPBACK
from chaoskit.world.redis.due import SERVICE
from chaoskit.world.redis.past import Past
from chaoskit.world.redis.relay import Session
from chaoskit.world.redis.server import find_server
from chaoskit.world.redis.snapshot import Snapshot
from chaoskit.world.redis.store import Store
from chaoskit.world.relay.lives import Lives


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
        self.lives: Lives[Session] = Lives(self._cut)
        self._gate: Gate | None = None

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

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """See `Service`.

        Raises:
            MissingServer: a server that was given cannot suffer what is due.
        """
        await self.lives.close_all()
        await self.lives.over()
        self._gate = gate
        await self.store.reset(gate, scenario)

    async def open(self, life: int) -> dict[str, str]:
        """See `Service`."""
        gate = self._gate
        assert gate is not None, "reset comes first"
        port = await self.lives.open(
            life, gate, lambda opened: Session(opened, self.lives, self.store)
        )
        return {"REDIS_URL": f"redis://{LOOPBACK}:{port}/0"}

    async def close(self, life: int) -> None:
        """See `Service`.

        Once it returns the server does nothing more for the life, except for messages
        that are at the gate: wait for those with `Gate.settled`.
        """
        await self.lives.close(life)

    async def stop(self) -> None:
        """See `Service`."""
        try:
            await self.lives.close_all()
        finally:
            await self.store.stop()
            await self.lives.stop()

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

    @asynccontextmanager
    async def sheltered(self) -> AsyncIterator[None]:
        """See `Sheltered`. Scripts that a guest has loaded stay known."""
        if self.lives.any_open:
            yield
            return
        past = Past(self.store.state, depth=1)
        await past.remember()
        yield
        await past.forget(1)

    async def _cut(self, sessions: list[Session]) -> None:
        for session in sessions:
            session.abort()
        idle = [session for session in sessions if not session.crossing]
        with suppress(ConnectionError):
            await self.store.hang_up(*(session.upstream.known for session in idle))
        for session in idle:
            session.upstream.abort()
        await self.lives.over(idle)
