"""Through the relay Redis is Redis, and every write in it is a crossing."""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest
import redis as client

from chaoskit.model.address import Address, Edge

Make = Callable[..., Any]
LIMIT_SECONDS = 20


def work(redis: Any) -> list[Any]:
    """A bit of everything a client can do, with what it got for it."""
    seen: list[Any] = [
        redis.set("s", "v", ex=100),
        redis.get("s"),
        redis.get("none"),
        redis.ttl("s") > 90,
        redis.hset("h", mapping={"a": "1", "b": "2"}),
        redis.hgetall("h"),
        redis.sadd("set", "x", "y"),
        sorted(redis.smembers("set")),
        redis.zadd("z", {"m": 1.5}),
        redis.zrange("z", 0, -1, withscores=True),
        redis.rpush("l", "1", "2", "3"),
        redis.blpop(["l"], timeout=1),
        redis.xadd("x", {"f": "v"}, id="1-1"),
        redis.xgroup_create("x", "g", id="0"),
        redis.xreadgroup("g", "c", {"x": ">"}),
        redis.xack("x", "g", "1-1"),
        redis.xread({"x": "0"}, block=10),
        redis.eval("return {KEYS[1], ARGV[1], redis.call('GET', 's')}", 1, "k", "a"),
        redis.register_script("return redis.call('INCR', KEYS[1])")(keys=["n"]),
        redis.setrange("big", 3_000_000, "end"),
        redis.get("big") == "\0" * 3_000_000 + "end",
    ]
    with pytest.raises(client.ResponseError, match="WRONGTYPE"):
        redis.lpush("s", "x")
    with redis.pipeline(transaction=False) as pipe:
        for number in range(100):
            pipe.set(f"p{number}", number).get(f"p{number}")
        seen.append(pipe.execute())
    with redis.pipeline() as pipe:
        pipe.watch("p1")
        value = pipe.get("p1")
        pipe.multi()
        pipe.set("copy", value).get("copy").hgetall("none")
        seen.append(pipe.execute())
    return [*seen, redis.select(1), redis.set("other", "db")]


WORK = [
    "set[s]#1",
    "hset[h]#1",
    "sadd[set]#1",
    "zadd[z]#1",
    "rpush[l]#1",
    "xadd[x]#1",
    "xgroup|create[x]#1",
    "xreadgroup[x]#1",
    "xack[x]#1",
    "eval[k]#1",
    "evalsha[n]#1",
    "evalsha[n]#2",
    "setrange[big]#1",
    "lpush[s]#1",
    *(f"set[p{number}]#1" for number in range(100)),
    "exec[copy]#1",
    "set[other]#1",
]


@pytest.mark.parametrize("protocol", [2, 3])
async def test_a_client_sees_the_same_with_and_without_the_relay(
    on_redis: Make, protocol: int
) -> None:
    async with on_redis() as b:

        def both() -> tuple[list[Any], list[Any]]:
            options: dict[str, Any] = {"decode_responses": True, "protocol": protocol}
            options["single_connection_client"] = True
            with client.Redis.from_url(b.url, **options) as relayed:
                got = work(relayed)
                relayed.flushall()
                relayed.script_flush()
            with client.Redis(unix_socket_path=b.socket, **options) as direct:
                return got, work(direct)

        relayed, direct = await asyncio.to_thread(both)
        assert relayed == direct
        assert b.done() == [*WORK, "flushall#1"]
        assert b.crossed(":before") == b.done()


@pytest.mark.parametrize("protocol", [2, 3])
async def test_crossings_of_an_asyncio_client(on_redis: Make, protocol: int) -> None:
    """Pipelines one by one, transactions as one, and reads not at all."""
    async with on_redis() as b:
        redis = b.connect(protocol=protocol)
        async with redis.pipeline(transaction=False) as pipe:
            pipe.get("a").set("a", "1").incr("a").get("a").ttl("a").set("b", "2")
            assert await pipe.execute() == [None, True, 2, "2", -1, True]
        async with redis.pipeline(transaction=True) as pipe:
            pipe.get("a").set("c", "3").set("d", "4")
            assert await pipe.execute() == ["2", True, True]
        async with redis.pipeline(transaction=True) as pipe:
            pipe.get("a").get("b")
            assert await pipe.execute() == ["2", "2"]
        assert b.done() == [
            "set[a]#1",
            "incrby[a]#1",
            "set[b]#1",
            "exec[c]#1",
        ]


async def test_a_watched_key_that_changed_spoils_the_transaction(
    on_redis: Make,
) -> None:
    async with on_redis() as b:
        redis, other = b.connect(), b.connect()
        async with redis.pipeline() as pipe:
            await pipe.watch("k")
            await other.set("k", "theirs")
            pipe.multi()
            pipe.set("k", "mine")
            with pytest.raises(client.WatchError):
                await pipe.execute()
        assert await redis.get("k") == "theirs"
        assert b.done() == ["set[k]#1", "exec[k]#1"]


async def test_functions_and_read_only_scripts(on_redis: Make) -> None:
    async with on_redis() as b:
        redis = b.connect()
        code = "redis.register_function('put', function(k, a) "
        code += "return redis.call('SET', k[1], a[1]) end)"
        await redis.function_load(f"#!lua name=lib\n{code}")
        await redis.fcall("put", 1, "k", "v")
        assert await redis.eval_ro("return redis.call('GET', KEYS[1])", 1, "k") == "v"
        assert b.done() == ["function|load#1", "fcall[k]#1"]


async def test_scripts_that_went_through_are_part_of_a_snapshot(on_redis: Make) -> None:
    async with on_redis() as b:
        redis = b.connect()
        await redis.eval("return 1", 0)
        loaded = await redis.script_load("return 2")
        snapshot = await b.service.snapshot()
        assert snapshot.scripts == {b"return 1", b"return 2"}
        await b.trial()
        await b.service.restore(snapshot)
        assert await b.connect().evalsha(loaded, 0) == 2


async def test_keys_that_carry_the_run_are_renamed(on_redis: Make) -> None:
    async with on_redis() as b:
        await b.connect().set("agent:run-7f3a", "v")
        assert b.done() == ["set[agent:{run}]#1"]


async def test_a_blocking_read_holds_nothing_up_and_is_not_counted(
    on_redis: Make,
) -> None:
    async with on_redis() as b:
        waiter, pusher = b.connect(), b.connect()
        waiting = asyncio.create_task(waiter.blpop(["l"], timeout=0))
        await b.until_blocked()
        await pusher.rpush("l", "x")
        assert tuple(await waiting) == ("l", "x")
        assert b.done() == ["rpush[l]#1"]


@pytest.mark.parametrize("protocol", [2, 3])
async def test_published_messages_arrive(on_redis: Make, protocol: int) -> None:
    async with on_redis() as b:
        redis, listener = (
            b.connect(protocol=protocol),
            b.connect(protocol=protocol).pubsub(),
        )
        await listener.subscribe("a", "b")
        await listener.psubscribe("c*")
        for _ in range(3):
            await listener.get_message(timeout=30)
        for channel in ("a", "cc", "none", "b"):
            await redis.publish(channel, f"to {channel}")
        got = [await listener.get_message(timeout=30) for _ in range(3)]
        assert [m["data"] for m in got] == ["to a", "to cc", "to b"]
        await listener.unsubscribe()
        for _ in range(2):
            assert (await listener.get_message(timeout=30))["type"] == "unsubscribe"
        await redis.publish("cd", "still there")
        assert (await listener.get_message(timeout=30))["data"] == "still there"
        await listener.aclose()
        assert b.done() == []


async def test_after_the_last_channel_a_connection_is_an_ordinary_one(
    on_redis: Make,
) -> None:
    """All in one write, so that nothing but the order of the replies tells."""
    async with on_redis() as b:
        raw = await b.raw()
        await raw.expect(
            b"SUBSCRIBE a b\r\nPING\r\nUNSUBSCRIBE\r\nSET k v\r\nPING\r\n",
            b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n",
            b"*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n",
            b"*2\r\n$4\r\npong\r\n$0\r\n\r\n",
        )
        left = [
            await raw.reader.readuntil(b":1\r\n"),
            await raw.reader.readuntil(b":0\r\n"),
        ]
        assert all(each.startswith(b"*3\r\n$11\r\nunsubscribe\r\n") for each in left)
        await raw.expect(b"", b"+OK\r\n", b"+PONG\r\n")
        assert b.done() == ["set[k]#1"]


async def test_push_messages_pass_between_a_command_and_its_reply(
    on_redis: Make,
) -> None:
    """Client-side caching: the server says which keys have changed."""
    async with on_redis() as b:
        raw, other = await b.raw(), b.connect()
        raw.send(b"HELLO 3\r\n")
        await raw.reader.readuntil(b"modules\r\n*0\r\n")
        await raw.expect(b"CLIENT TRACKING ON\r\nGET k\r\n", b"+OK\r\n", b"_\r\n")
        await other.set("k", "v")
        await raw.expect(b"", b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n")


async def test_a_monitor_sees_everything_until_it_is_reset(on_redis: Make) -> None:
    async with on_redis() as b:
        raw = await b.raw()
        await raw.expect(b"MONITOR\r\n", b"+OK\r\n")
        await b.connect().set("k", "v")
        assert b'"SET" "k" "v"' in await raw.reader.readuntil(b'"v"\r\n')
        raw.send(b"RESET\r\nSET l v\r\n")
        await raw.reader.readuntil(b"+RESET\r\n+OK\r\n")
        assert b.done() == ["set[k]#1", "set[l]#1"]


async def test_what_would_work_against_the_harness_is_refused_in_words(
    on_redis: Make,
) -> None:
    async with on_redis() as b:
        raw = await b.raw()
        off = (
            b"-ERR chaoskit does not pass on CLIENT REPLY: "
            b"the relay needs the reply to every command\r\n"
        )
        await raw.expect(b"CLIENT REPLY OFF\r\nPING\r\n", off, b"+PONG\r\n")
        await raw.expect(
            b"MULTI\r\nSET k v\r\nCLIENT REPLY SKIP\r\nEXEC\r\nEXISTS k\r\n",
            b"+OK\r\n+QUEUED\r\n",
            off,
            b"-EXECABORT Transaction discarded because of previous errors.\r\n:0\r\n",
        )


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (b"ACL SETUSER default off", b"ACL SETUSER"),
        (b"acl deluser bob", b"ACL DELUSER"),
        (b"ACL LOAD", b"ACL LOAD"),
        (b"CONFIG SET maxmemory 0 RequirePass x", b"CONFIG SET REQUIREPASS"),
    ],
)
async def test_nobody_is_locked_out_of_the_server(
    on_redis: Make, command: bytes, name: bytes
) -> None:
    async with on_redis() as b:
        why = b"it could lock the harness out, and would outlive the trial"
        said = b"-ERR chaoskit does not pass on %b: %b\r\n" % (name, why)
        await (await b.raw()).expect(command + b"\r\n", said)
        await (await b.raw()).expect(b"CONFIG SET maxmemory 0\r\n", b"+OK\r\n")


async def test_a_server_that_lets_nobody_in_says_so_itself(on_redis: Make) -> None:
    async with on_redis() as b:
        await b.real.config_set("requirepass", "x")
        assert (await (await b.raw()).rest()).startswith(b"-NOAUTH ")
        await b.real.config_set("requirepass", "")
        await (await b.raw()).expect(b"PING\r\n", b"+PONG\r\n")
        await b.over()


async def test_what_is_no_command_is_answered_as_a_server_would(on_redis: Make) -> None:
    async with on_redis() as b:
        raw = await b.raw()
        said = b"-ERR Protocol error: invalid multibulk length\r\n"
        await raw.expect(b"SET k v\r\n*x\r\n", b"+OK\r\n", said)
        assert await raw.rest() == b""


async def test_quit_is_answered_and_hangs_up(on_redis: Make) -> None:
    async with on_redis() as b:
        raw = await b.raw()
        await raw.expect(b"SET k v\r\nQUIT\r\n", b"+OK\r\n+OK\r\n")
        assert await raw.rest() == b""


async def test_who_hangs_up_has_sent_what_arrived_whole(on_redis: Make) -> None:
    """Five commands were whole; the sixth was not, and a server would not do it."""
    async with on_redis() as b:
        raw = await b.raw()
        whole = b"".join(b"SET k%d v\r\n" % number for number in range(5))
        raw.send(whole + b"*3\r\n$3\r\nSET\r\n$2\r\nk5\r\n$1\r\n")
        raw.writer.write_eof()
        assert await raw.reader.read() == b"+OK\r\n" * 5
        assert b.done() == [f"set[k{number}]#1" for number in range(5)]
        assert await b.direct().dbsize() == 5


@pytest.mark.parametrize("hang_up", ["eof", "reset"])
async def test_a_blocking_read_ends_with_its_client(
    on_redis: Make, hang_up: str
) -> None:
    async with on_redis() as b:
        raw, direct = await b.raw(), b.direct()
        raw.send(b"BLPOP l 0\r\n")
        await b.until_blocked()
        if hang_up == "eof":
            raw.writer.write_eof()
        else:
            raw.writer.transport.abort()
        await b.until_blocked(0)
        await direct.rpush("l", "x")
        assert await direct.lrange("l", 0, -1) == ["x"]


async def test_a_blocking_read_of_who_has_already_left_takes_what_is_there(
    on_redis: Make,
) -> None:
    """It arrived whole, so it is done; but it does not wait."""
    held, go_on = asyncio.Event(), asyncio.Event()

    async def watch(address: Address) -> bool:
        held.set()
        await go_on.wait()
        return False

    async with on_redis("", watch) as b:
        raw, direct = await b.raw(), b.direct()
        await direct.rpush("l", "x", "y")
        raw.send(b"SET k v\r\nBLPOP l 0\r\nBLPOP l 0\r\n")
        raw.writer.write_eof()
        await held.wait()
        while not next(iter(b.service.lives.sessions)).has_left:
            await direct.ping()
        go_on.set()
        await raw.reader.read()
        await b.over()
        assert await direct.lrange("l", 0, -1) == ["y"]


async def test_a_client_that_reads_nothing_holds_up_only_itself(on_redis: Make) -> None:
    """And the relay does not pile up for it what the server would say."""
    gets, big = 20, 5_000_000
    async with on_redis() as b:
        deaf, redis = await b.raw(), b.connect()
        await deaf.expect(b"PING\r\n", b"+PONG\r\n")
        (session,) = b.service.lives.sessions
        await redis.set("big", "x" * big)
        deaf.writer.transport.pause_reading()
        deaf.send(b"GET big\r\n" * gets + b"SET last v\r\n" * 9)
        for number in range(200):
            await redis.set("k", number)
        assert session._transport.get_write_buffer_size() < 2 * big
        assert not any(operation.startswith("set[last]") for operation in b.done())
        deaf.writer.transport.resume_reading()
        whole = (len(b"$5000000\r\n\r\n") + big) * gets + len(b"+OK\r\n") * 9
        assert (await deaf.reader.readexactly(whole)).endswith(b"+OK\r\n" * 9)
        assert b.done()[-1] == "set[last]#9"


@pytest.mark.parametrize("leaves", ["at once", "amid a reply", "never"])
async def test_a_client_that_has_not_read_its_replies_keeps_no_life_open(
    on_redis: Make, leaves: str
) -> None:
    async with on_redis() as b:
        deaf, redis = await b.raw(), b.connect()
        await redis.set("big", "x" * 3_000_000)
        await deaf.expect(b"PING\r\n", b"+PONG\r\n")
        sessions = list(b.service.lives.sessions)
        deaf.writer.transport.pause_reading()
        deaf.send(b"GET big\r\n" * 20)
        while all(each._writable.is_set() for each in sessions):
            await b.real.ping()
        if leaves == "amid a reply":
            deaf.writer.transport.resume_reading()
            await deaf.reader.readexactly(100)
        if leaves != "never":
            deaf.writer.transport.abort()
            await b.service.lives.over(s for s in sessions if not s._writable.is_set())
        await b.over()
        assert not b.service.lives.sessions


async def test_a_client_that_reads_nothing_cannot_keep_its_message_in_the_gate(
    on_redis: Make,
) -> None:
    """So much is pushed to it, while it is held, that the relay stops listening."""
    held, go_on = asyncio.Event(), asyncio.Event()

    async def watch(address: Address) -> bool:
        if address.operation.key == "k" and address.edge == Edge.BEFORE:
            held.set()
            await go_on.wait()
        return False

    async with on_redis("", watch) as b:
        deaf, redis = await b.raw(), b.connect()
        deaf.writer.transport.pause_reading()
        deaf.send(b"HELLO 3\r\nSUBSCRIBE c\r\nSET k v\r\n")
        await held.wait()
        for _ in range(16):
            await redis.publish("c", "x" * 1_000_000)
        go_on.set()
        assert await redis.set("l", "v")
        assert b.done() == ["set[k]#1", "set[l]#1"]


async def test_who_reads_no_replies_is_not_carried_on_without_end(
    on_redis: Make,
) -> None:
    """Thirty writes are answered with a megabyte each, and nobody reads that."""
    async with on_redis() as b:
        deaf, redis = await b.raw(), b.connect()
        deaf.writer.transport.pause_reading()
        deaf.send(b"EVAL \"return string.rep('x', 1000000)\" 0\r\n" * 30)
        for number in range(200):
            await redis.set("k", number)
        seen = b.done().count("eval#1"), b.done().count("eval#30")
        assert seen == (1, 0)


async def test_a_pipeline_is_answered_as_a_server_answers_it(on_redis: Make) -> None:
    """Replies wait while more commands are there, and for nothing else."""
    async with on_redis() as b:
        raw = await b.raw()
        await raw.expect(b"PING\r\n", b"+PONG\r\n")
        (session,) = b.service.lives.sessions
        sent: list[bytes] = []
        session._transport.write = sent.append
        raw.send(b"SET k v\r\n" * 5 + b"GET k\r\n" + b"INCR n\r\n" * 2)
        while b.done()[-1:] != ["incr[n]#2"]:
            await b.direct().ping()
        await b.direct().ping()
        assert sent == [b"+OK\r\n" * 5 + b"$1\r\nv\r\n", b":1\r\n:2\r\n"]


async def test_replies_do_not_wait_for_each_other(on_redis: Make) -> None:
    """Nagle's algorithm would hold the second reply until the first is acknowledged."""
    async with on_redis() as b:
        await (await b.raw()).expect(b"PING\r\n", b"+PONG\r\n")
        (session,) = b.service.lives.sessions
        ours = session._transport.get_extra_info("socket")
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_more_than_the_relay_will_keep_still_gets_through(on_redis: Make) -> None:
    """Reading pauses above a limit and goes on, also amid one large command."""
    async with on_redis() as b:
        redis = b.connect()
        value = os.urandom(3_000_000).hex()
        async with redis.pipeline(transaction=False) as pipe:
            for number in range(3):
                pipe.set(f"k{number}", value)
            assert await pipe.execute() == [True] * 3
        assert await redis.get("k2") == value


async def test_lives_leave_no_file_open(on_redis: Make) -> None:
    async with on_redis() as b:

        async def live(life: int) -> int:
            if life:
                await b.service.open(life)
            raw, redis = await b.raw(), b.connect()
            await redis.set("k", "v")
            await redis.aclose()
            await raw.expect(b"PING\r\nBLPOP l 0\r\nGET", b"+PONG\r\n")
            await b.over(life)
            assert await raw.rest() == b""
            await raw.aclose()
            return len(os.listdir("/proc/self/fd"))

        counts = [await live(life) for life in range(12)]
        assert max(counts[2:]) <= max(counts[:2])
        assert len(await b.real.client_list(_type="normal")) == 2  # this, and ours
        assert not b.service.lives.sessions


async def test_a_life_beside_another_is_told_apart(on_redis: Make) -> None:
    """A life that was stopped goes on, connects anew, and is still who it was."""

    class Whose:
        life = 0

        def connection(self, client: Any, server: Any) -> int:
            return self.life

        def process(self, pid: int) -> None:
            """Nobody asks."""

    async with on_redis() as b:
        whose = Whose()
        await b.trial(whose=whose)
        first = b.connect()
        await first.set("k", "0")
        first_url, whose.life = b.url, 1
        await b.open(1)
        assert b.url == first_url
        second = b.connect()
        await second.set("k", "1")
        whose.life = 0
        await first.connection_pool.disconnect()
        await first.set("k", "2")
        told = b.gate.addresses()
        assert [address[:2] for address in told[::2]] == ["0:", "1:", "0:"]
        await b.over(0)
        assert await second.get("k") == "2"


async def test_a_bug_of_ours_is_not_taken_for_the_agents(
    on_redis: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_redis() as b:
        monkeypatch.setattr(b.service.store.table, "meaning", lambda words: 1 / 0)
        raw = await b.raw()
        raw.send(b"PING\r\n")
        assert await raw.rest() == b""
        with pytest.raises(ZeroDivisionError):
            await b.service.close(0)
