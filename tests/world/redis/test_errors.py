"""The errors that faults inject are those that the real server gives."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from chaoskit.wire.redis.errors import ERRORS, error
from chaoskit.world.redis.link import Link, link
from chaoskit.world.redis.own import OwnServer, find_program
from chaoskit.world.redis.server import check_version

Spoil = Callable[[Link, Link], Awaitable[object]]
ENDLESS = ("EVAL", "while true do end", 0)
LIMIT_SECONDS = 20


async def _out_of_memory(ours: Link, other: Link) -> None:
    await ours.do(("CONFIG", "SET", "maxmemory", 1))


async def _a_replica(ours: Link, other: Link) -> None:
    await ours.do(("REPLICAOF", "127.0.0.1", 1))


async def _a_stale_replica(ours: Link, other: Link) -> None:
    stale = ("CONFIG", "SET", "replica-serve-stale-data", "no")
    writable = ("CONFIG", "SET", "replica-read-only", "no")
    await ours.do(stale, writable, ("REPLICAOF", "127.0.0.1", 1))


async def _busy(ours: Link, other: Link) -> Any:
    await ours.do(("CONFIG", "SET", "lua-time-limit", 20))
    script = asyncio.create_task(other.ask(ENDLESS))
    while not str((await ours.ask(("PING",)))[0]).startswith("BUSY"):
        pass
    return script


SPOILT: dict[str, Spoil] = {
    "OOM": _out_of_memory,
    "READONLY": _a_replica,
    "MASTERDOWN": _a_stale_replica,
    "BUSY": _busy,
}


@asynccontextmanager
async def _running(folder: Path) -> AsyncIterator[tuple[Link, Link, Link]]:
    server = OwnServer(folder)
    links = [await server.start(), await link(server), await link(server)]
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            yield links[0], links[1], links[2]
    finally:
        for each in links:
            each.close()
        await server.stop()


async def _title(ours: Link) -> str:
    return (await check_version(ours)).partition(" ")[0].capitalize()


@pytest.mark.parametrize("name", SPOILT)
async def test_a_spoilt_server_says_what_the_fault_says(
    tmp_path: Path, name: str
) -> None:
    async with _running(tmp_path) as (ours, other, third):
        title = await _title(ours)
        await third.do(("MULTI",), ("SET", "k", "v"))
        await SPOILT[name](ours, other)
        said = [*(await ours.ask(("SET", "k", "v"))), *(await third.ask(("EXEC",)))]
        assert [f"-{each}\r\n".encode() for each in said] == [
            error(name, title, transaction=False),
            error(name, title, transaction=True),
        ]


async def test_a_server_that_loads_says_what_the_fault_says(tmp_path: Path) -> None:
    async with _started(tmp_path, "--rdbcompression", "no") as ours:
        title = await _title(ours)
        await ours.do(*(("SET", n, "x" * 5000) for n in range(20)), ("SAVE",))
    slowly = ("--key-load-delay", "300000", "--loading-process-events-interval-bytes")
    async with _started(tmp_path, *slowly, "1024") as ours:
        await ours.do(("MULTI",))
        said = await ours.ask(("SET", "k", "v"), ("DISCARD",))
        assert f"-{said[0]}\r\n".encode() == error("LOADING", title, transaction=False)


async def test_a_cluster_that_is_down_says_what_the_fault_says(tmp_path: Path) -> None:
    async with _started(tmp_path, "--cluster-enabled", "yes") as ours:
        (slot,) = await ours.do(("CLUSTER", "KEYSLOT", "k"))
        await ours.do(("CLUSTER", "ADDSLOTS", slot))
        await ours.do(("MULTI",))
        said = await ours.ask(("SET", "k", "v"), ("DISCARD",), ("SET", "k", "v"))
        expected = error("CLUSTERDOWN", "", transaction=True)
        assert [f"-{said[n]}\r\n".encode() for n in (0, 2)] == [expected] * 2


@asynccontextmanager
async def _started(folder: Path, *words: str) -> AsyncIterator[Link]:
    """A server with options of its own."""
    options = ("--port", "0", "--unixsocket", "redis.sock", *words)
    process = await asyncio.create_subprocess_exec(
        find_program(), *options, cwd=folder, stdout=subprocess.DEVNULL
    )
    loop, made = asyncio.get_running_loop(), Link()
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            while True:
                try:
                    path = str(folder / "redis.sock")
                    await loop.create_unix_connection(lambda: made, path)
                    break
                except (FileNotFoundError, ConnectionRefusedError):
                    await asyncio.sleep(0)
            yield made
    finally:
        made.close()
        process.kill()
        await process.wait()


def test_every_error_begins_with_its_name() -> None:
    assert all(text.partition(" ")[0] == name for name, text in ERRORS.items())
