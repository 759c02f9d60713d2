"""Records what psycopg and asyncpg say to a real PostgreSQL server, and it to them.

Run by hand, where a client has a new version: ``python tests/wire/record_postgres.py``.
It writes ``recordings/postgres.json``: for each client a list of connections, each of
which is two texts in base64, what the client sent and what the server sent.
"""

import asyncio
import base64
import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import psycopg

from chaoskit.world.postgres.own import OwnServer

OUT = Path(__file__).parent / "recordings" / "postgres.json"


async def say_psycopg(port: int) -> None:
    """Start-up, simple and extended, errors, a pipeline, COPY, LISTEN."""
    url = f"postgresql://agent@127.0.0.1:{port}/postgres"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as client:
        await client.execute("CREATE TEMP TABLE t (id int PRIMARY KEY, v text)")
        async with client.pipeline() as pipeline:
            await client.execute("INSERT INTO t VALUES (%s, %s)", [1, "a"])
            await pipeline.sync()
            await client.execute("INSERT INTO t VALUES (%s, %s)", [2, "b"])
        for values in ([3, "c"], [3, "c"]):
            with suppress(psycopg.errors.UniqueViolation):
                await client.execute("INSERT INTO t VALUES (%s, %s)", values)
        async with client.cursor().copy("COPY t FROM STDIN") as copy:
            for number in range(10, 300):
                await copy.write_row((number, "x" * 20))
        async with client.cursor().copy("COPY t TO STDOUT") as copy:
            _ = [piece async for piece in copy]
        async with client.transaction():
            await client.execute("LISTEN c")
            await client.execute("NOTIFY c, 'hello'")
        await (await client.execute("SELECT * FROM t")).fetchall()


async def say_asyncpg(port: int) -> None:
    """Prepared statements, many at once, cursors, COPY, errors."""
    client = await asyncpg.connect(
        f"postgresql://agent@127.0.0.1:{port}/postgres", timeout=10
    )
    await client.execute("CREATE TEMP TABLE t (id int PRIMARY KEY, v text)")
    await client.executemany("INSERT INTO t VALUES ($1, $2)", [(1, "a"), (2, "b")])
    async with client.transaction():
        _ = [row async for row in client.cursor("SELECT * FROM t", prefetch=1)]
    records = [(number, "x" * 20) for number in range(10, 300)]
    await client.copy_records_to_table("t", records=records)
    with suppress(asyncpg.UniqueViolationError):
        await client.execute("INSERT INTO t VALUES (1, 'again')")
    await client.fetch("SELECT * FROM t")
    await client.close()


class Tape:
    """A proxy that keeps what passes."""

    def __init__(self, server: OwnServer) -> None:
        self.connections: list[tuple[bytearray, bytearray]] = []
        self._server = server

    async def __call__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve one connection."""
        both = bytearray(), bytearray()
        self.connections.append(both)
        where = self._server.connection("postgres")
        path = f"{where['host']}/.s.PGSQL.{where['port']}"
        there = await asyncio.open_unix_connection(path)
        await asyncio.gather(
            self._pump(reader, there[1], both[0]), self._pump(there[0], writer, both[1])
        )

    async def _pump(self, source: Any, sink: Any, kept: bytearray) -> None:
        while data := await source.read(65536):
            kept += data
            sink.write(data)
        sink.close()


async def main() -> None:
    """Record both clients."""
    recorded = {}
    with tempfile.TemporaryDirectory() as folder:
        server = OwnServer(Path(folder))
        await server.start()
        for name, say in (("psycopg", say_psycopg), ("asyncpg", say_asyncpg)):
            tape = Tape(server)
            proxy = await asyncio.start_server(tape, "127.0.0.1", 0)
            await say(proxy.sockets[0].getsockname()[1])
            proxy.close()
            recorded[name] = [
                [base64.b64encode(side).decode() for side in both]
                for both in tape.connections
            ]
        await server.stop()
    OUT.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
