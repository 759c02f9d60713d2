"""The PostgreSQL service itself: a relay over a store, life by life."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import psycopg
from pydantic import JsonValue

from chaoskit.gate import Crossing, Gate
from chaoskit.model.faults import FaultKind
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Fault
from chaoskit.world.listener import LOOPBACK
from chaoskit.world.postgres.dump import Snapshot
from chaoskit.world.postgres.link import reaching
from chaoskit.world.postgres.lobby import InTrial, Lobby, Up
from chaoskit.world.postgres.own import OwnServer
from chaoskit.world.postgres.passage import SERVICE
from chaoskit.world.postgres.relay import Session
from chaoskit.world.postgres.server import find_server
from chaoskit.world.postgres.state import PostgresState
from chaoskit.world.servers import MissingServer


class Postgres(Lobby):
    """A `Service`, and a `Stateful` one.

    Args:
        folder: where a server of our own may live.
        url: a server to use instead, that lets us make databases.

    Raises:
        MissingServer: the URL makes no sense.
    """

    name = SERVICE
    variables: ClassVar[Mapping[str, str]] = {
        "DATABASE_URL": "a real PostgreSQL behind a relay"
    }

    def __init__(self, folder: Path, url: str | None = None) -> None:
        super().__init__(find_server(url, folder))
        self.version = ""
        """Name and version of the server, once started: ``postgresql 15.18``."""

    async def start(self) -> None:
        """See `Service`.

        Raises:
            MissingServer: there is no server to be had, or not this one.
        """
        await self.server.start()
        try:
            admin = await self._link()
        except BaseException:
            await self.server.stop()
            raise
        version = admin.info.parameter_status("server_version") or ""
        self.version = f"postgresql {version.partition(' ')[0]}"
        self._up = Up(admin, PostgresState(self.server, admin))
        self._is_up.set()

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """See `Service`.

        Raises:
            MissingServer: a fault is due that only a server of our own can suffer.
        """
        await self.lives.close_all()
        await self.lives.over()
        self._trial = InTrial(gate, scenario.durability.postgres)
        if isinstance(self.server, OwnServer):
            self.server.thaw()
        elif self._trial.expects(FaultKind.RESTART):
            raise MissingServer(
                "`restart` kills the PostgreSQL server, and the one at "
                f"{self.server.shown} is not chaoskit's to kill. Leave "
                "CHAOSKIT_DATABASE_URL unset: chaoskit then starts one of its own"
            )
        with reaching():
            await self._started.state.reset(self._trial.durability)
        self.classifier.functions = frozenset()
        await self._freeze()

    async def open(self, life: int) -> dict[str, str]:
        """See `Service`."""
        assert self._trial is not None, "reset comes first"
        # Locks and sessions of a life that is over are gone before the next begins.
        await self.lives.over(s for s in self.lives.sessions if s.opened.is_closed)
        port = await self.lives.open(
            life,
            self._trial.gate,
            lambda opened: Session(opened, self.lives, self),
        )
        return {"DATABASE_URL": self._url(port)}

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
            await self.lives.stop()
            await self._give_back()
            await self.server.stop()

    async def snapshot(self) -> Snapshot:
        """See `Stateful`."""
        with reaching():
            return await self._started.state.snapshot()

    async def restore(self, snapshot: object) -> None:
        """See `Stateful`."""
        assert isinstance(snapshot, Snapshot)
        with reaching():
            await self._started.state.restore(snapshot)
            await self.schema_changed()

    async def view(self) -> JsonValue:
        """See `Stateful`; for its form see `chaoskit.world.postgres.view`."""
        with reaching():
            return await self._started.state.view()

    @asynccontextmanager
    async def sheltered(self) -> AsyncIterator[None]:
        """See `Sheltered`. To undo something is to sync what was not synced before."""
        if self.lives.any_open:
            yield
            return
        before = await self.snapshot()
        yield
        if await self.snapshot() != before:
            await self.restore(before)

    async def suffer(self, fault: Fault, crossing: Crossing) -> bool:
        """See `chaoskit.gate.Host`: restart, or forget the last commits.

        Other sessions that are in a transaction end with the commits that are
        forgotten, as in a failover.
        """
        del crossing
        if fault.kind is FaultKind.RESTART:
            await self._restart()
            return True
        assert self._trial is not None
        kept = self._trial.kept
        count = min(int(fault.chosen or 1), len(kept))
        if count:
            await self.restore(kept[-count])
            del kept[-count:]
        return count > 0

    async def _give_back(self) -> None:
        if self._up is None:
            return
        up, self._up = self._up, None
        with suppress(psycopg.Error):
            await up.state.leave()
            if not isinstance(self.server, OwnServer):
                await up.state.drop()
        await up.admin.close()

    def _url(self, port: int) -> str:
        server = self.server
        word = f":{quote(server.password, safe='')}" if server.password else ""
        user = f"{quote(server.role, safe='')}{word}"
        return f"postgresql://{user}@{LOOPBACK}:{port}/{server.database}"
