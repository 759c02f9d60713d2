"""PostgreSQL behind its relay, on a server that the tests share or on their own."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from chaoskit.model.history import Cause
from chaoskit.world.postgres import Postgres
from chaoskit.world.postgres.own import OwnServer

Make = Callable[..., Any]


class PostgresBench:
    """PostgreSQL behind its relay with life 0 open, and the gate in it."""

    def __init__(self, service: Postgres, make_gate: Make, make_scenario: Make) -> None:
        self.service = service
        self.gate: Any = None
        self.url = ""
        self.ended: list[int] = []
        self.look: Callable[[], Awaitable[Any]] | None = None
        self.found: list[Any] = []
        self._make_gate = make_gate
        self._make_scenario = make_scenario
        self._opened: list[Any] = []

    async def trial(
        self, schedule: str = "", watch: Any = None, durability: str = "on"
    ) -> None:
        """A fresh trial, with life 0 open."""
        self.gate = self._make_gate(schedule, watch=watch, end_life=self._end_life)
        scenario = self._make_scenario(durability={"postgres": durability})
        await self.service.reset(self.gate, scenario)
        await self.open(0)

    async def open(self, life: int) -> None:
        self.url = (await self.service.open(life))["DATABASE_URL"]

    async def over(self, life: int = 0) -> None:
        """What a trial does when a life has ended."""
        self.gate.close(life)
        await self.service.close(life)
        await self.gate.settled(life)

    async def connect(self, **options: Any) -> Any:
        """A client of psycopg through the relay; by default without transactions."""
        options = {"autocommit": True, **options}
        made = await psycopg.AsyncConnection.connect(self.url, **options)
        self._opened.append(made)
        return made

    async def raw(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A bare connection through the relay, logged in."""
        parts = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        words = f"user\0{parts.username}\0database\0{parts.path[1:]}\0\0".encode()
        writer.write(struct.pack(">II", 8 + len(words), 3 << 16) + words)
        await reader.readuntil(b"Z\0\0\0\5I")
        return reader, writer

    async def real(self) -> Any:
        """A connection of a test to the real server."""
        where = self.service.server.connection(self.service.server.database)
        made = await psycopg.AsyncConnection.connect(**where, autocommit=True)
        self._opened.append(made)
        return made

    async def rows(self, query: str = "SELECT v FROM t ORDER BY id") -> list[Any]:
        """The first column of what the real server answers."""
        real = await self.real()
        rows = await (await real.execute(query)).fetchall()
        await real.close()
        return [row[0] for row in rows]

    async def table(self) -> Any:
        """A connection through the relay that has made an empty table ``t``."""
        made = await self.connect()
        await made.execute("CREATE TABLE t (id serial PRIMARY KEY, v text UNIQUE)")
        return made

    def crossed(self, edge: str = "") -> list[str]:
        """What crossed (an edge), without life and service."""
        return self.gate.crossed(edge)

    def fired(self) -> list[str]:
        return self.gate.fired()

    async def stop(self) -> None:
        for each in self._opened:
            await each.close()
        await self.service.stop()

    async def _end_life(self, life: int, cause: Cause) -> None:
        self.ended.append(life)
        if self.look is not None:
            self.found.append(await self.look())


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server for all tests that do not stop it."""
    server = OwnServer(tmp_path_factory.mktemp("postgres"))
    asyncio.run(server.start())
    where = server.connection("postgres")
    yield f"postgresql://{where['user']}@/postgres?host={where['host']}"
    asyncio.run(server.stop())


@pytest.fixture
def on_postgres(
    make_gate: Make, make_scenario: Make, postgres_url: str, tmp_path: Path
) -> Callable[..., AbstractAsyncContextManager[PostgresBench]]:
    """Run PostgreSQL: ``async with on_postgres(schedule) as bench``.

    With ``own=True`` on a server of its own.
    """

    @asynccontextmanager
    async def running(
        schedule: str = "",
        watch: Any = None,
        *,
        own: bool = False,
        seconds_max: float = 60,
    ) -> AsyncIterator[PostgresBench]:
        url = None if own else postgres_url
        bench = PostgresBench(
            Postgres(tmp_path / "postgres", url), make_gate, make_scenario
        )
        async with asyncio.timeout(seconds_max):
            await bench.service.start()
            try:
                await bench.trial(schedule, watch)
                yield bench
            finally:
                await bench.stop()

    return running
