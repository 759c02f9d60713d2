"""The real server's own command table is read as the server means it."""

import asyncio
from typing import Any

import pytest

from chaoskit.wire.redis.commands import CommandTable, Kind
from chaoskit.world.redis.own import OwnServer

LINES = [
    "SET k v",
    "MSET a 1 b 2",
    "BITOP AND dest a b",
    "ZUNIONSTORE dest 2 a b",
    "COPY a b",
    "EVAL script 2 a b",
    "EVALSHA sha 1 a",
    "FCALL f 1 a",
    "LMPOP 2 a b LEFT",
    "BLMPOP 0 2 a b LEFT",
    "ZMPOP 1 a MIN",
    "XADD s * f v",
    "XGROUP CREATE s g $",
    "XREADGROUP GROUP g c COUNT 1 STREAMS s t > >",
    "XREADGROUP GROUP g c BLOCK 1 STREAMS s >",
    "XAUTOCLAIM s g c 0 0",
    "GEOSEARCHSTORE d s FROMMEMBER m BYRADIUS 1 m",
    "SORT l STORE d",
    "RENAME a b",
    "PFADD p x",
    "GETEX k EX 1",
    "BRPOPLPUSH a b 0",
    "RESTORE k 0 x",
    "MIGRATE host 1 k 0 1",
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The reply to COMMAND, and the first key of each line as the server finds it."""

    async def ask() -> tuple[Any, list[Any]]:
        server = OwnServer(tmp_path_factory.mktemp("redis"))
        first = await server.start()
        lines = [("COMMAND", "GETKEYS", *line.split()) for line in LINES]
        (commands,), keys = await first.do(("COMMAND",)), await first.do(*lines)
        first.close()
        await server.stop()
        return commands, [found[0].decode() for found in keys]

    return asyncio.run(ask())


def test_the_first_key_is_the_one_the_server_finds(told: Any) -> None:
    commands, expected = told
    table = CommandTable(commands)
    meanings = [table.meaning([w.encode() for w in line.split()]) for line in LINES]
    found = {m.op: m.key for m in meanings}
    assert found == dict(zip((m.op for m in meanings), expected, strict=True))
    assert all(m.writes for m in meanings)


def test_every_write_is_a_crossing_or_blocks(told: Any) -> None:
    """No command that the server flags as a write may pass uncounted."""
    commands, _ = told
    table = CommandTable(commands)
    flat = [*commands, *(sub for entry in commands for sub in entry[9])]
    for name, _, flags, *_ in flat:
        kind = table.meaning(name.split(b"|")).kind
        if b"write" in flags:
            assert kind in (Kind.WRITE, Kind.BLOCKING), name
        elif kind is Kind.WRITE:
            assert name in (b"eval", b"evalsha", b"fcall")
