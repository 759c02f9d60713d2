"""What the sessions of PostgreSQL have in common: the server, and the trial.

It knows who is connected, ends them for good, and holds what the service itself and its
sessions share.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg

from chaoskit.gate import Gate
from chaoskit.model.faults import FaultKind
from chaoskit.model.scenario import PostgresDurability
from chaoskit.wire.postgres.sql import Classifier
from chaoskit.world.postgres.dump import Snapshot
from chaoskit.world.postgres.link import Connection, link
from chaoskit.world.postgres.own import OwnServer
from chaoskit.world.postgres.passage import SERVICE
from chaoskit.world.postgres.relay import Session
from chaoskit.world.postgres.server import GivenServer
from chaoskit.world.postgres.state import PostgresState
from chaoskit.world.postgres.upstream import Upstream
from chaoskit.world.relay.lives import Lives

_WRITER = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"

_POSITION = "SELECT pg_current_wal_insert_lsn()"
_HAS_WRITTEN = """
    SELECT 1 FROM pg_stat_activity JOIN pg_locks USING (pid)
    WHERE pid = %s AND backend_xid IS NOT NULL AND pg_locks.locktype = 'relation'
    AND mode NOT IN ('AccessShareLock', 'RowShareLock')
"""
"""Who only locks rows has a number, too, but no such lock on their table."""


@dataclass
class Up:
    """What there is between `start` and `stop`."""

    admin: Connection
    state: PostgresState


@dataclass
class InTrial:
    """What there is between one `reset` and the next.

    ``kept`` is the state before each commit, where a fault wants to go back to one.
    """

    gate: Gate
    durability: PostgresDurability
    kept: list[Snapshot] = field(default_factory=list)

    def expects(self, kind: FaultKind) -> bool:
        """Whether such a fault is still due here."""
        return self.gate.expects(kind, SERVICE)


class Lobby:
    """A `Host` for sessions."""

    def __init__(self, server: GivenServer | OwnServer) -> None:
        self.server = server
        self.classifier = Classifier()
        self._up: Up | None = None
        self._trial: InTrial | None = None
        self._is_up, self._may_join = asyncio.Event(), asyncio.Event()
        self._may_join.set()
        self.lives: Lives[Session] = Lives(self._cut)

    @property
    def reserved_role(self) -> str:
        """See `Host`."""
        return self.server.reserved_role

    async def connect(self, upstream: Upstream) -> None:
        """See `Host`."""
        await self._may_join.wait()
        await self._is_up.wait()
        self._started.state.touched()
        await self.server.connect(upstream)

    async def cancel(self, request: bytes) -> None:
        """See `Host`."""
        with suppress(OSError):
            canceller = _Canceller(request)
            await self.server.connect(canceller)
            await canceller.taken.wait()

    async def end(self, upstreams: list[Upstream]) -> None:
        """See `Host`."""
        there = [each for each in upstreams if not each.is_lost]
        for each in there:
            each.mute()
        numbers = [each.number for each in there if each.number]
        try:
            if numbers and self._up is not None:
                ends = "SELECT pg_terminate_backend(n) FROM unnest(%s::int[]) n"
                await self._up.admin.execute(ends, (numbers,))
        except psycopg.Error:  # the server is gone, and they with it
            numbers = []
        for each in there:
            if each.number not in numbers:
                each.abort()
            await each.gone

    def keep_alone(self) -> bool:
        """See `passage.Host`."""
        if len(self.lives.sessions) > 1:
            return False
        self._may_join.clear()
        return True

    def let_join(self) -> None:
        """See `passage.Host`."""
        self._may_join.set()

    async def before_commit(self) -> None:
        """See `Host`."""
        if self._trial is not None and self._trial.expects(FaultKind.ROLLBACK):
            self._trial.kept.append(await self._started.state.snapshot())

    async def position(self) -> str | None:
        """See `passage.Host`."""
        try:
            found = await self._started.admin.execute(_POSITION)
            row = await found.fetchone()
        except psycopg.Error:  # the server is gone, and starts again perhaps
            return None
        return None if row is None else str(row[0])

    async def has_written(self, session: int) -> bool:
        """See `passage.Host`."""
        try:
            found = await self._started.admin.execute(_HAS_WRITTEN, (session,))
            return await found.fetchone() is not None
        except psycopg.Error:
            return True

    async def before_lock(self) -> None:
        """See `Host`."""
        assert self._trial is not None
        if not self._trial.gate.is_calm:  # otherwise nobody looks while it is locked
            await self._started.state.keep()

    async def schema_changed(self) -> None:
        """See `Host`."""
        self.classifier.functions = await self._started.state.writers()

    async def _link(self) -> Connection:
        if isinstance(self.server, OwnServer):
            return await link(self.server.connection("postgres"))
        return await link(self.server.connection())

    async def _restart(self) -> None:
        server, up = self.server, self._started
        assert isinstance(server, OwnServer), "reset refuses it"
        self._is_up.clear()
        await up.state.leave()
        await up.admin.close()
        await server.crash()
        await server.start_again()
        up.admin = await self._link()
        up.state.admin = up.admin
        await self._freeze()
        self._is_up.set()

    async def _freeze(self) -> None:
        """See `OwnServer.freeze`: only where a restart is to come and may lose."""
        assert self._trial is not None
        may_lose = self._trial.durability is PostgresDurability.OFF
        if may_lose and self._trial.expects(FaultKind.RESTART):
            assert isinstance(self.server, OwnServer), "reset refuses it"
            found = await self._started.admin.execute(_WRITER)
            for (number,) in await found.fetchall():
                self.server.freeze(number)

    async def _cut(self, sessions: list[Session]) -> None:
        for session in sessions:
            session.abort()
        free = [session for session in sessions if not session.passage.holds]
        await self.end([session.upstream for session in free])

    @property
    def _started(self) -> Up:
        assert self._up is not None, "start comes first"
        return self._up


class _Canceller(asyncio.Protocol):
    """Hands one request to cancel to the server, which answers by hanging up."""

    def __init__(self, request: bytes) -> None:
        self.taken = asyncio.Event()
        self._request = request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        self.taken.set()
