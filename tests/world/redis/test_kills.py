"""A life that ends leaves in Redis what had passed, and nothing else, ever."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis as client

from chaoskit.model.address import Address
from chaoskit.world.redis.link import link
from chaoskit.world.servers import MissingServer

Make = Callable[..., Any]
LIMIT_SECONDS = 20
OK = b"+OK\r\n"
BUSY = "for i = 1, 5e7 do end"
"""A script that takes a few tenths of a second."""


async def test_killed_before_nothing_is_applied(on_redis: Make) -> None:
    async with on_redis("kill@0:redis.set[k]#1:before") as b:
        b.look = lambda: b.real.get("k")
        raw = await b.raw()
        raw.send(b"SET k v\r\n")
        assert await raw.rest() == b""
        await b.over()
        assert b.found == [None]
        assert await b.real.get("k") is None
        assert b.crossed() == ["set[k]#1:before"]


async def test_killed_after_it_is_applied_and_not_answered(on_redis: Make) -> None:
    async with on_redis("kill@0:redis.set[k]#1:after") as b:
        b.look = lambda: b.real.get("k")
        raw = await b.raw()
        raw.send(b"SET k v\r\n")
        assert await raw.rest() == b""
        assert b.found == ["v"]
        assert b.crossed() == ["set[k]#1:before", "set[k]#1:after"]


@pytest.mark.parametrize(("edge", "applied"), [("before", 2), ("after", 3)])
async def test_a_pipeline_is_cut_where_the_kill_strikes(
    on_redis: Make, edge: str, applied: int
) -> None:
    """Five commands in one write; the third is struck, the rest is never looked at."""
    async with on_redis(f"kill@0:redis.rpush[l]#3:{edge}") as b:
        raw = await b.raw()
        raw.send(b"".join(b"RPUSH l %d\r\nLLEN l\r\n" % n for n in range(1, 6)))
        assert await raw.rest() == b":1\r\n:1\r\n:2\r\n:2\r\n"
        await b.over()
        assert await b.real.lrange("l", 0, -1) == ["1", "2", "3"][:applied]


@pytest.mark.parametrize(("edge", "value"), [("before", None), ("after", "v")])
@pytest.mark.parametrize("in_one_write", [True, False])
async def test_a_transaction_is_struck_as_a_whole(
    on_redis: Make, edge: str, value: str | None, *, in_one_write: bool
) -> None:
    async with on_redis(f"kill@0:redis.exec[k]#1:{edge}") as b:
        raw, opening = await b.raw(), b"MULTI\r\nSET k v\r\nSET l v\r\n"
        if in_one_write:
            raw.send(opening + b"EXEC\r\n")
        else:
            raw.send(opening)
            await raw.reader.readexactly(len(OK + b"+QUEUED\r\n" * 2))
            raw.send(b"EXEC\r\n")
        assert await raw.rest() == b""
        await b.over()
        assert await b.real.mget("k", "l") == [value, value]


async def test_a_message_past_before_is_applied_late(on_redis: Make) -> None:
    """B is past `before` when A's kill strikes; C has arrived and is not past it."""
    b_is_held, go_on = asyncio.Event(), asyncio.Event()

    async def watch(address: Address) -> bool:
        if address.operation.key == "b":
            b_is_held.set()
            await go_on.wait()
        return False

    async with on_redis("kill@0:redis.set[a]#1:before", watch) as b:
        first, second, third = [await b.raw() for _ in range(3)]
        second.send(b"SET b v\r\nSET b2 v\r\n")
        await b_is_held.wait()
        first.send(b"SET a v\r\n")
        third.send(b"SET c v\r\nPING\r\n")
        while len(b.gate._counts) < 3:  # until all have arrived at the gate
            await b.real.ping()
        go_on.set()
        assert [await each.rest() for each in (first, second, third)] == [b""] * 3
        await b.over()
        assert await b.real.mget("a", "b", "b2", "c") == [None, "v", None, None]
        assert b.crossed() == [
            "set[b]#1:before",
            "set[a]#1:before",
            "set[b]#1:after late",
        ]


async def test_a_life_may_be_closed_while_the_gate_holds_its_message(
    on_redis: Make,
) -> None:
    """`close` must not wait for the message that its caller is holding."""
    async with on_redis("kill@0:redis.set[k]#1:after") as b:
        b.look = lambda: b.service.close(0)
        raw, other = await b.raw(), await b.raw()
        other.send(b"BLPOP l 0\r\n")
        await b.until_blocked()
        raw.send(b"SET k v\r\nSET l v\r\n")
        assert (await raw.rest(), await other.rest()) == (b"", b"")
        await b.over()
        assert await b.real.keys() == ["k"]


async def test_a_closed_life_begins_nothing_more(on_redis: Make) -> None:
    """Also where the gate has not been told yet that it is over."""
    go_on = asyncio.Event()

    async def watch(address: Address) -> bool:
        await go_on.wait()
        return False

    async with on_redis("", watch) as b:
        raw = await b.raw()
        raw.send(b"SET k v\r\nSET l v\r\n")
        while not b.crossed():
            await b.real.ping()
        await b.service.close(0)
        go_on.set()
        await b.gate.settled(0)
        await b.over()
        assert await b.real.keys() == ["k"]


@pytest.mark.parametrize(
    "command", ["BLPOP {} 0", "BLMOVE {} x LEFT LEFT 0", "BLMPOP 0 1 {} LEFT"]
)
async def test_a_dead_life_takes_nothing_from_a_list(
    on_redis: Make, command: str
) -> None:
    """Many times, as what could go wrong is a race."""
    async with on_redis() as b:
        for life in range(20):
            if life:
                await b.open(life)
            raw = await b.raw()
            raw.send(command.format(f"l{life}").encode() + b"\r\n")
            await b.until_blocked()
            await b.over(life)
            await b.real.rpush(f"l{life}", "x")
            assert await b.real.llen(f"l{life}") == 1


async def test_a_dead_life_takes_nothing_from_a_stream(on_redis: Make) -> None:
    async with on_redis() as b:
        await b.real.xgroup_create("s", "g", mkstream=True)
        raw = await b.raw()
        raw.send(b"XREADGROUP GROUP g c BLOCK 0 STREAMS s >\r\n")
        await b.until_blocked()
        await b.over()
        await b.real.xadd("s", {"f": "v"})
        assert (await b.real.xpending("s", "g"))["pending"] == 0


async def test_what_a_transaction_queued_dies_with_the_life(on_redis: Make) -> None:
    async with on_redis() as b:
        raw = await b.raw()
        raw.send(b"SET k v\r\nMULTI\r\nDEL k\r\n")
        assert await raw.reader.readexactly(19) == OK * 2 + b"+QUEUED\r\n"
        await b.over()
        await b.open(1)
        successor = await b.raw()
        successor.send(b"EXISTS k\r\nEXEC\r\n")
        answer = b":1\r\n-ERR EXEC without MULTI\r\n"
        assert await successor.reader.readexactly(len(answer)) == answer


async def test_when_close_returns_the_server_has_dropped_the_life(
    on_redis: Make,
) -> None:
    """Not soon after: whoever asks next must find nobody."""
    async with on_redis() as b:
        for line in (b"PING\r\n", b"SUBSCRIBE c\r\n", b"MONITOR\r\n", b"BLPOP l 0\r\n"):
            raw = await b.raw()
            raw.send(line)
            if not line.startswith(b"BLPOP"):
                await raw.reader.readuntil(b"\r\n")
        await b.until_blocked()
        assert len(await b.real.client_list()) == 6
        await b.over()
        assert len(await b.real.client_list()) == 2


@pytest.mark.parametrize(
    "line", ["DEL k", "GET k", "BLPOP l 0", "MULTI", "PUBLISH c x"]
)
async def test_what_a_dead_life_still_sends_goes_nowhere(
    on_redis: Make, line: str
) -> None:
    """The gate knows first; the connection may live on until the life is closed."""
    async with on_redis() as b:
        raw = await b.raw()
        raw.send(b"SET k v\r\n")
        assert await raw.reader.readexactly(5) == OK
        b.gate.close(0)
        raw.send(line.encode() + b"\r\n")
        assert await raw.rest() == b""
        await b.over()
        assert await b.real.keys() == ["k"]


async def test_close_waits_for_the_server_itself(on_redis: Make) -> None:
    """A server that is busy has not dropped anybody yet, whatever we have closed."""
    async with on_redis() as b:
        raw, other = await b.raw(), await link(b.service.server)
        raw.send(b"PING\r\n")
        assert await raw.reader.readexactly(7) == b"+PONG\r\n"
        script = asyncio.create_task(other.ask(("EVAL", BUSY, 0), ("TIME",)))
        await asyncio.sleep(0)
        await b.over()
        over = time.time()
        seconds, microseconds = (await script)[1]
        assert int(seconds) + int(microseconds) / 1e6 <= over
        other.close()


async def endless(b: Any, script: bytes) -> None:
    """Have the server run a script without an end."""
    await b.real.config_set("lua-time-limit", 20)
    raw = await b.raw()
    raw.send(b'EVAL "%b while true do end" 0\r\n' % script)
    while not await is_busy(b):
        pass


async def is_busy(b: Any) -> bool:
    try:
        return not await b.real.ping()
    except client.ResponseError as problem:
        return str(problem).startswith("BUSY")


async def test_a_script_without_an_end_does_not_outlive_its_life(
    on_redis: Make,
) -> None:
    async with on_redis() as b:
        await endless(b, b"")
        await b.over()
        assert b.crossed() == ["eval#1:before", "eval#1:after late"]


async def test_who_connects_while_a_script_runs_can_end_it(on_redis: Make) -> None:
    """As with the server alone: it is told BUSY, and SCRIPT KILL is heard."""
    async with on_redis() as b:
        await endless(b, b"")
        late = await b.raw()
        late.send(b"GET k\r\n")
        assert (await late.reader.readline()).startswith(b"-BUSY ")
        await late.expect(b"SCRIPT KILL\r\n", b"+OK\r\n")


async def test_a_script_that_cannot_be_ended_keeps_nobody_waiting(
    on_redis: Make,
) -> None:
    """It has written something, and half of a script the server will not do."""

    async def cut_short() -> None:
        async with on_redis() as b:
            await endless(b, b"redis.call('SET', 'k', 'v')")
            await b.over()

    with pytest.raises(MissingServer, match="without an end"):
        await cut_short()


async def test_a_connection_that_nobody_had_accepted_is_of_the_old_life(
    on_redis: Make,
) -> None:
    async with on_redis() as b:
        raw = await b.raw()
        raw.send(b"SET k v\r\n")
        # It is accepted in the next round of the loop at the earliest.
        await b.over()
        await b.open(1)
        assert await raw.rest() == b""
        assert await b.real.keys() == []
        successor = await b.raw()
        successor.send(b"SET k v\r\n")
        assert await successor.reader.readexactly(5) == OK


async def test_a_new_trial_ends_what_the_last_one_left(on_redis: Make) -> None:
    async with on_redis() as b:
        raw = await b.raw()
        raw.send(b"SET k v\r\nMULTI\r\nSET k w\r\nBLPOP l 0\r\n")
        await raw.reader.readexactly(19)
        old = b.gate
        await b.trial("")
        assert await b.real.keys() == []
        assert await raw.rest() in (b"", b"+QUEUED\r\n")
        fresh = await b.raw()
        fresh.send(b"SET k v\r\n")
        assert await fresh.reader.readexactly(5) == OK
        assert b.crossed() == ["set[k]#1:before", "set[k]#1:after"]
        assert len(old.record.events) == 2


async def test_a_server_that_goes_away_hangs_up_on_everybody(on_redis: Make) -> None:
    """Also on a message at the gate, and whoever looks next is told."""
    async with on_redis() as b:
        raw, idle = await b.raw(), await b.raw()
        idle.send(b"PING\r\n")
        await idle.reader.readexactly(7)
        await b.service.server.stop()
        raw.send(b"SET k v\r\n")
        assert (await raw.rest(), await idle.rest()) == (b"", b"")
        await b.over()
        with pytest.raises(ConnectionError, match="Redis server"):
            await b.service.view()
