"""What each fault is on `redis`, seen by redis-py and by a raw socket."""

import asyncio
import os
import socket
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis import exceptions

from chaoskit.model.history import FaultFired
from chaoskit.wire.redis.errors import ERRORS
from chaoskit.world.redis import Redis
from chaoskit.world.redis.link import link
from chaoskit.world.servers import MissingServer

LIMIT_SECONDS = 20
RAISED = {
    "LOADING": exceptions.BusyLoadingError,
    "OOM": exceptions.OutOfMemoryError,
    "READONLY": exceptions.ReadOnlyError,
    "BUSY": exceptions.ResponseError,
    "MASTERDOWN": exceptions.MasterDownError,
    "CLUSTERDOWN": exceptions.ClusterDownError,
}
KEEPS = ["always", "everysec", "no"]


@pytest.fixture
def trial(on_redis):
    """A trial with a schedule, and the next one after it, which has no trace of it."""

    @asynccontextmanager
    async def run(schedule, durability="always"):
        async with on_redis() as bench:
            clean = await _clean(bench)
            await bench.trial(schedule, durability=durability)
            yield bench
            await bench.hang_up()
            assert bench.fired() == [schedule]
            assert await _clean(bench) == clean

    return run


async def _clean(bench):
    """All that can be seen of a trial in which one key is set, and nothing is due."""
    await bench.trial()
    redis = bench.connect()
    found = await redis.keys("*"), await redis.get("k"), await redis.set("k", "v")
    sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"  # "return 1"
    known = await redis.script_exists(sha), await redis.function_list()
    view = await bench.service.view()
    config = await bench.direct().config_get("*")
    await bench.hang_up()
    assert bench.crossed() == ["set[k]#1:before", "set[k]#1:after"]
    assert bench.fired() == []
    assert os.listdir(Path(bench.socket).with_name("data")) == []
    return found, known, view, config, bench.url


async def _reset_after(bench, sent):
    return await asyncio.to_thread(_until_the_reset, bench.port, sent)


def _until_the_reset(port, sent):
    """What a bare socket gets: asyncio's streams lose the last of it at a reset."""
    got = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=30) as bare:
        bare.sendall(sent)
        try:
            while data := bare.recv(65536):
                got += data
        except ConnectionResetError:
            return got
    pytest.fail("the connection ended without a reset")


@pytest.mark.parametrize(("edge", "value"), [("before", None), ("after", "v")])
async def test_kill(trial, edge, value):
    async with trial(f"kill@0:redis.set[k]#1:{edge}") as bench:
        assert await _reset_after(bench, b"SET k v\r\n") == b""
        assert bench.ended == [0]
        assert await bench.direct().get("k") == value


@pytest.mark.proves("redis.refuse")
async def test_refuse(trial):
    async with trial("refuse@0:redis.set[k]#2:before") as bench:
        redis = bench.connect()
        await redis.set("k", "1")
        with pytest.raises(exceptions.ConnectionError):
            await redis.set("k", "2")
        assert await redis.get("k") == "1"
        assert await redis.set("k", "3")
        assert bench.crossed()[2:] == [
            "set[k]#2:before",
            "set[k]#3:before",
            "set[k]#3:after",
        ]


@pytest.mark.proves("redis.refuse", "redis.drop_reply")
@pytest.mark.parametrize(
    ("kind", "edge", "count"), [("refuse", "before", 1), ("drop_reply", "after", 2)]
)
async def test_the_cut_is_a_reset_behind_what_was_answered(trial, kind, edge, count):
    async with trial(f"{kind}@0:redis.rpush[l]#2:{edge}") as bench:
        sent = b"RPUSH l 1\r\nRPUSH l 2\r\nRPUSH l 3\r\n"
        assert await _reset_after(bench, sent) == b":1\r\n"
        assert await bench.direct().llen("l") == count


@pytest.mark.proves("redis.drop_reply")
async def test_drop_reply(trial):
    """A client that tries again does it twice."""
    async with trial("drop_reply@0:redis.incrby[n]#1:after") as bench:
        redis = bench.connect()
        with pytest.raises(exceptions.ConnectionError):
            await redis.incr("n")
        assert await redis.incr("n") == 2


@pytest.mark.proves("redis.error")
@pytest.mark.parametrize(("edge", "value"), [("before", None), ("after", "v")])
@pytest.mark.parametrize("name", ERRORS)
async def test_error(trial, name, edge, value):
    async with trial(f"error({name})@0:redis.set[k]#1:{edge}") as bench:
        redis = bench.connect(single_connection_client=True)
        number = await redis.client_id()
        with pytest.raises(RAISED[name]):
            await redis.set("k", "v")
        assert await bench.direct().get("k") == value
        assert await redis.set("k", "w")
        # redis-py itself hangs up on LOADING.
        assert (await redis.client_id() == number) == (name != "LOADING")


@pytest.mark.proves("redis.error")
async def test_an_error_without_an_argument_is_loading(trial):
    async with trial("error@0:redis.set[k]#1:before") as bench:
        with pytest.raises(exceptions.BusyLoadingError):
            await bench.connect().set("k", "v")


@pytest.mark.proves("redis.error")
@pytest.mark.parametrize(("edge", "value"), [("before", None), ("after", "v")])
@pytest.mark.parametrize("in_one_write", [True, False])
async def test_an_error_in_a_transaction(trial, edge, value, in_one_write):
    """As a server does it: all is discarded, and what was watched is so no more."""
    said = b"-EXECABORT Transaction discarded because of: READONLY You can't write "
    said += b"against a read only replica.\r\n"
    opening, queued = (
        b"MULTI\r\nSET k v\r\nSET l v\r\n",
        b"+OK\r\n" + b"+QUEUED\r\n" * 2,
    )
    async with trial(f"error(READONLY)@0:redis.exec[k]#1:{edge}") as bench:
        raw = await bench.raw()
        await raw.expect(b"WATCH w\r\n", b"+OK\r\n")
        if in_one_write:
            raw.send(opening + b"EXEC\r\nPING\r\n")
            got = await raw.reader.readexactly(len(queued + said) + 7)
        else:
            raw.send(opening)
            got = await raw.reader.readexactly(len(queued))
            raw.send(b"EXEC\r\nPING\r\n")
            got += await raw.reader.readexactly(len(said) + 7)
        assert got == queued + said + b"+PONG\r\n"
        assert await bench.direct().mget("k", "l") == [value, value]
        await bench.direct().set("w", "changed")
        raw.send(b"MULTI\r\nSET k w\r\nEXEC\r\n")
        done = b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n"
        assert await raw.reader.readexactly(len(done)) == done


@pytest.mark.proves("redis.full")
async def test_full(trial):
    async with trial("full@0:redis.set[k]#1:before") as bench:
        redis = bench.connect()
        with pytest.raises(exceptions.OutOfMemoryError):
            await redis.set("k", "v")
        assert await redis.get("k") is None
        assert await redis.set("k", "v")


@pytest.mark.proves("redis.delay")
@pytest.mark.parametrize(("edge", "value"), [("before", None), ("after", "v")])
async def test_delay(trial, edge, value):
    async with trial(f"delay(0.2)@0:redis.set[k]#1:{edge}") as bench:
        began = time.monotonic()
        slow = asyncio.create_task(bench.connect().set("k", "v"))
        await bench.gate.record.sink.seen("fault")
        assert await bench.connect().set("other", "v")
        assert await bench.direct().get("k") == value
        assert not slow.done(), "others pass meanwhile"
        assert await slow
        assert time.monotonic() - began >= 0.2


@pytest.mark.proves("redis.delay")
async def test_what_was_answered_before_a_delay_has_arrived(trial):
    """A pipeline's first replies do not wait for the one that is held."""
    async with trial("delay(9)@0:redis.set[k]#1:after") as bench:
        raw = await bench.raw()
        raw.send(b"SET j v\r\nGET j\r\nSET k v\r\nGET j\r\n")
        assert await raw.reader.readexactly(12) == b"+OK\r\n$1\r\nv\r\n"
        await bench.gate.record.sink.seen("fault")
        bench.gate.close(0)


@pytest.mark.proves("redis.tear")
@pytest.mark.parametrize("size", [2, 300_000, 4_000_000])
async def test_tear(trial, size):
    whole = b"$%d\r\n%s\r\n" % (size, b"x" * size)
    async with trial("tear@0:redis.eval#1:part:1") as bench:
        sent = b"EVAL \"return string.rep('x', %d)\" 0\r\nPING\r\n" % size
        assert await _reset_after(bench, sent) == whole[: len(whole) // 2]
        assert bench.crossed() == [
            f"eval#1:{edge}" for edge in ("before", "after", "part:1")
        ]
        assert await bench.connect().ping()


@pytest.mark.proves("redis.restart")
@pytest.mark.parametrize(("edge", "count"), [("before", 2), ("after", 3)])
@pytest.mark.parametrize("durability", KEEPS)
async def test_restart(trial, durability, edge, count):
    """SIGKILL takes from no append-only file what was answered."""
    schedule = f"restart@0:redis.rpush[l]#3:{edge}"
    async with trial(schedule, durability=durability) as bench:
        redis = bench.connect()
        before = (await redis.info("server"))["process_id"]
        told = await redis.config_get("append*")
        assert (told["appendonly"], told["appendfsync"]) == ("yes", durability)
        await redis.rpush("l", "1")
        await redis.rpush("l", "2")
        await redis.set("soon", "v", ex=100)
        await redis.xadd("x", {"f": "v"}, id="1-1")
        await redis.xgroup_create("x", "g", id="0")
        await redis.xreadgroup("g", "c", {"x": ">"})
        with pytest.raises(exceptions.ConnectionError):
            await redis.rpush("l", "3")
        assert (await redis.info("server"))["process_id"] != before
        assert await redis.llen("l") == count
        assert 90 < await redis.ttl("soon") <= 100
        assert (await redis.xpending("x", "g"))["pending"] == 1


@pytest.mark.proves("redis.restart")
async def test_restart_with_nothing_kept(trial):
    schedule = "restart@0:redis.set[k]#2:after"
    async with trial(schedule, durability="none") as bench:
        redis = bench.connect()
        await redis.set("j", "v")
        await redis.set("k", "v")
        with pytest.raises(exceptions.ConnectionError):
            await redis.set("k", "w")
        assert await redis.keys("*") == []
        assert await bench.service.view() == {}


@pytest.mark.proves("redis.restart")
async def test_a_restart_takes_every_connection_and_every_script(trial):
    """And who comes while the server is away finds it at the same address."""
    async with trial("restart@0:redis.set[k]#1:after") as bench:
        redis, queue = bench.connect(), bench.connect()
        sha = await redis.script_load("return 1")
        listener = bench.connect().pubsub()
        await listener.subscribe("c")
        await listener.get_message(timeout=30)
        blocked = asyncio.create_task(queue.blpop(["l"], timeout=0))
        direct = bench.direct()
        while not (await direct.info("clients"))["blocked_clients"]:
            pass
        await direct.connection_pool.disconnect()
        with pytest.raises(exceptions.ConnectionError):
            await redis.set("k", "v")
        with pytest.raises(exceptions.ConnectionError):
            await blocked
        with pytest.raises(exceptions.ConnectionError):
            await listener.get_message(timeout=30)
        assert await redis.script_exists(sha) == [False]
        assert (await bench.service.snapshot()).scripts == frozenset()
        assert await queue.get("k") == "v"
        await bench.service.close(0)


@pytest.mark.proves("redis.restart")
async def test_a_server_that_was_given_is_not_killed(
    make_gate, make_scenario, tmp_path
):
    """Said in words, in the first trial already, whose schedule is empty."""
    own = Redis(tmp_path)
    await own.start()
    given = Redis(tmp_path / "none", f"unix://{tmp_path}/redis.sock")
    try:
        await given.start()
        await given.reset(make_gate(), make_scenario())
        with pytest.raises(
            MissingServer, match=r"not ours to kill.*CHAOSKIT_REDIS_URL"
        ):
            await given.reset(make_gate(), make_scenario(faults=["kill", "restart"]))
        await given.stop()
        first = await link(own.server)
        assert await first.do(("PING",)) == [b"PONG"]
        first.close()
    finally:
        await own.stop()


@pytest.mark.proves("redis.rollback")
@pytest.mark.parametrize(
    ("argument", "left"),
    [("", ["1", "2"]), ("(1)", ["1", "2"]), ("(2)", ["1"]), ("(9)", [])],
)
async def test_rollback(trial, argument, left):
    """The write is acknowledged, and then it is not there."""
    async with trial(f"rollback{argument}@0:redis.rpush[l]#3:after") as bench:
        redis = bench.connect()
        replies = [await redis.rpush("l", n) for n in ("1", "2", "3")]
        assert replies == [1, 2, 3]
        assert await redis.lrange("l", 0, -1) == left
        assert await redis.rpush("l", "4") == len(left) + 1


@pytest.mark.proves("redis.rollback")
async def test_a_rollback_brings_back_what_was_deleted(trial):
    """Of every type, with its time to live; and takes what changed nothing for none."""
    async with trial("rollback(2)@0:redis.set[k]#1:after") as bench:
        redis = bench.connect()
        await redis.set("soon", "v", px=60_000)
        await redis.hset("h", mapping={"a": "1"})
        await redis.xadd("x", {"f": "v"}, id="1-1")
        await redis.xgroup_create("x", "g", id="0")
        before = await bench.service.view()
        await redis.delete("soon", "h", "x")
        assert not await redis.delete("none")
        await redis.set("k", "v")
        assert await bench.service.view() == before
        assert 0 < await redis.pttl("soon") <= 60_000


@pytest.mark.proves("redis.rollback")
async def test_who_watches_something_else_notices_no_rollback(trial):
    async with trial("rollback@0:redis.set[k]#2:after") as bench:
        redis, other = bench.connect(), bench.connect()
        await redis.set("k", "1")
        await redis.set("far", "v", ex=100)
        async with other.pipeline() as far, redis.pipeline() as near:
            await far.watch("far")
            await near.watch("k")
            await bench.connect().set("k", "2")
            far.multi()
            near.multi()
            far.get("k")
            near.get("k")
            assert await far.execute() == ["1"]
            with pytest.raises(exceptions.WatchError):
                await near.execute()


@pytest.mark.proves("redis.rollback")
async def test_nothing_is_remembered_where_no_rollback_is_due(trial):
    """What it needs is a look at all of the store before each write."""
    async with trial("rollback@0:redis.set[k]#1:after") as bench:
        assert bench.service.store.past is not None
        await bench.connect().set("k", "v")
        assert bench.service.store.past is None


@pytest.mark.proves("redis.expire")
@pytest.mark.parametrize(("edge", "value"), [("before", "xy"), ("after", None)])
async def test_expire(trial, edge, value):
    async with trial(f"expire@0:redis.append[k]#2:{edge}") as bench:
        redis = bench.connect(db=3)
        await redis.append("k", "v")
        await redis.set("other", "v")
        assert await redis.append("k", "xy") == (2 if value else 3)
        assert await redis.get("k") == value
        assert await redis.get("other") == "v"


@pytest.mark.proves("redis.expire")
async def test_expire_is_the_servers_own(trial):
    """Key events, watchers and tracking clients see a key that expired."""
    async with trial("expire({run}:lock)@0:redis.set[k]#1:after") as bench:
        redis, listener = bench.connect(), bench.connect().pubsub()
        await redis.config_set("notify-keyspace-events", "KEx")
        await listener.psubscribe("__key*__:*")
        await listener.get_message(timeout=30)
        await redis.set("run-7f3a:lock", "v")
        async with bench.connect().pipeline() as pipe:
            await pipe.watch("run-7f3a:lock")
            await redis.set("k", "v")
            pipe.multi()
            pipe.get("k")
            with pytest.raises(exceptions.WatchError):
                await pipe.execute()
        said = [(await listener.get_message(timeout=30))["channel"] for _ in range(2)]
        assert said == ["__keyspace@0__:run-7f3a:lock", "__keyevent@0__:expired"]
        assert await redis.keys("*") == ["k"]


@pytest.mark.proves("redis.expire")
async def test_a_transaction_expires_the_first_key_it_writes(trial):
    async with trial("expire@0:redis.exec[k]#1:after") as bench:
        redis = bench.connect()
        async with redis.pipeline() as pipe:
            assert await pipe.get("j").set("k", "v").set("l", "v").execute()
        assert await redis.keys("*") == ["l"]


@pytest.mark.parametrize(
    "schedule",
    [
        "expire(nobody)@0:redis.set[k]#1:after",
        "expire@0:redis.set[k]#1:before",
        "rollback@0:redis.del[k]#1:after",
    ],
)
async def test_a_fault_that_finds_nothing_to_forget_is_idle(trial, schedule):
    """A key that is not there, and a write that changed nothing."""
    async with trial(schedule) as bench:
        redis = bench.connect()
        await (redis.delete("k") if "del" in schedule else redis.set("k", "v"))
        events = bench.gate.record.events
        fired = [event for event in events if isinstance(event, FaultFired)]
        assert [event.idle for event in fired] == [True]
