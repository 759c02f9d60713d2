"""Redis behind its relay, and clients of the relay and of the server itself."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio as client
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from chaoskit.model.history import Cause
from chaoskit.world.redis import Redis

Make = Callable[..., Any]


class Raw:
    """A bare connection through the relay: nothing is sent but what a test says."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def hears(self, *replies: bytes) -> None:
        """Get exactly this."""
        expected = b"".join(replies)
        assert await self.reader.readexactly(len(expected)) == expected

    async def expect(self, sent: bytes, *replies: bytes) -> None:
        """Send, and get exactly this back."""
        self.send(sent)
        await self.hears(*replies)

    async def rest(self) -> bytes:
        """All that comes until the relay hangs up, gently or not."""
        got = b""
        try:
            while piece := await self.reader.read(1000):
                got += piece
        except ConnectionError:
            pass
        return got

    async def aclose(self) -> None:
        self.writer.close()


class RedisBench:
    """Redis behind its relay with life 0 open, and the gate in it."""

    def __init__(
        self, service: Redis, folder: Path, make_gate: Make, make_scenario: Make
    ) -> None:
        self.service = service
        self.socket = str(folder / "redis.sock")
        self.gate: Any = None
        self.url = ""
        self.ended: list[int] = []
        self.look: Callable[[], Awaitable[Any]] | None = None
        self.found: list[Any] = []
        self._make_gate, self._make_scenario = make_gate, make_scenario
        self._clients: list[Any] = []
        self._real: Any = None

    async def trial(
        self,
        schedule: str = "",
        watch: Any = None,
        *,
        durability: str = "always",
        whose: Any = None,
    ) -> None:
        """A fresh trial, with life 0 open."""
        self.gate = self._make_gate(schedule, watch=watch, end_life=self._end_life)
        self.gate.whose = whose
        scenario = self._make_scenario(durability={"redis": durability})
        await self.service.reset(self.gate, scenario)
        await self.open(0)

    async def open(self, life: int) -> None:
        self.url = (await self.service.open(life))["REDIS_URL"]

    async def over(self, life: int = 0) -> None:
        """What a trial does when a life has ended."""
        self.gate.close(life)
        await self.service.close(life)
        await self.gate.settled(life)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2].partition("/")[0])

    def connect(self, **options: Any) -> Any:
        """A client through the relay, that tries nothing twice."""
        options = {"retry": Retry(NoBackoff(), 0), **options}
        return self._client(client.Redis.from_url, self.url, **options)

    def direct(self, **options: Any) -> Any:
        """A client of the real server."""
        return self._client(client.Redis, unix_socket_path=self.socket, **options)

    @property
    def real(self) -> Any:
        """The one client of the real server that is always there."""
        self._real = self._real or self.direct()
        return self._real

    async def until_blocked(self, clients: int = 1) -> None:
        """Wait until the server has so many that block; each look is a message."""
        while (await self.real.info("clients"))["blocked_clients"] != clients:
            pass

    async def raw(self) -> Raw:
        """A bare connection through the relay."""
        made = Raw(*await asyncio.open_connection("127.0.0.1", self.port))
        self._clients.append(made)
        return made

    async def hang_up(self) -> None:
        """Close what was connected."""
        for each in self._clients:
            await each.aclose()
        self._clients.clear()
        self._real = None

    def crossed(self, edge: str = "") -> list[str]:
        """What crossed (an edge), without life and service."""
        return self.gate.crossed(edge)

    def done(self) -> list[str]:
        """What the server has done, of what crosses."""
        return self.crossed(":after")

    def fired(self) -> list[str]:
        return self.gate.fired()

    def _client(self, make: Make, *where: Any, **options: Any) -> Any:
        options = {"protocol": 3, "decode_responses": True, **options}
        self._clients.append(make(*where, **options))
        return self._clients[-1]

    async def _end_life(self, life: int, cause: Cause) -> None:
        self.ended.append(life)
        if self.look is not None:
            self.found.append(await self.look())


@pytest.fixture
def on_redis(
    make_gate: Make, make_scenario: Make, tmp_path: Path
) -> Callable[..., AbstractAsyncContextManager[RedisBench]]:
    """Run Redis: ``async with on_redis(schedule) as bench``."""

    @asynccontextmanager
    async def running(
        schedule: str = "", watch: Any = None, *, seconds_max: float = 20
    ) -> AsyncIterator[RedisBench]:
        bench = RedisBench(Redis(tmp_path), tmp_path, make_gate, make_scenario)
        async with asyncio.timeout(seconds_max):
            await bench.service.start()
            try:
                await bench.trial(schedule, watch)
                yield bench
            finally:
                await bench.hang_up()
                await bench.service.stop()

    return running
