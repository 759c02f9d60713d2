"""A real workload gives through the relay what it gives without it.

Every part runs twice on one server, emptied in between: directly and relayed. What the
client got must be equal, and so must what it left behind.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis as client

Make = Callable[..., Any]
LIMIT_SECONDS = 30
LIBRARY = """#!lua name=lib
redis.register_function('put', function(keys, args)
  return redis.call('SET', keys[1], args[1])
end)
redis.register_function{function_name='look', flags={'no-writes'},
  callback=function(keys) return redis.call('GET', keys[1]) end}
"""


async def pipelines(redis: Any, connect: Make) -> list[Any]:
    async with redis.pipeline(transaction=False) as pipe:
        for n in range(50):
            pipe.set(f"k{n}", "x" * n).get(f"k{n}").incr("n").lpush("k0", "wrong type")
        got = await pipe.execute(raise_on_error=False)
    return [str(each) for each in got]


async def transactions(redis: Any, connect: Make) -> list[Any]:
    other, seen = connect(), []

    async def add(pipe: Any) -> None:
        balance = int(await pipe.get("balance") or 0)
        if balance == 0:
            await other.set("balance", 5)
        pipe.multi()
        pipe.set("balance", balance + 1).get("balance")

    seen.append(await redis.transaction(add, "balance"))
    async with redis.pipeline() as pipe:
        pipe.set("text", "v").lpush("text", "x").incr("n")
        seen.append([str(e) for e in await pipe.execute(raise_on_error=False)])
    async with redis.pipeline() as pipe:
        pipe.execute_command("SET", "one word too few")
        with pytest.raises(client.ResponseError) as wrong:
            await pipe.execute()
        seen.append(str(wrong.value))
    async with redis.pipeline() as pipe:
        pipe.eval("return redis.call('INCR', KEYS[1])", 1, "n").get("n").sadd("s", "m")
        seen.append(await pipe.execute())
    async with redis.pipeline() as pipe:
        pipe.blpop(["none"], timeout=0).get("n")
        seen.append(await pipe.execute())
    return seen


async def scripts(redis: Any, connect: Make) -> list[Any]:
    script = redis.register_script("return {KEYS[1], ARGV[1]}")
    seen = [await script(["k"], ["a"]), await script(["k"], ["b"])]
    sha = await redis.script_load("redis.call('SET', KEYS[1], 'v') return 1")
    seen += [sha, await redis.script_exists(sha), await redis.evalsha(sha, 1, "k")]
    with pytest.raises(client.exceptions.NoScriptError):
        await redis.evalsha("0" * 40, 0)
    with pytest.raises(client.ResponseError) as wrong:
        await redis.eval("return redis.call('NONE')", 0)
    seen += [str(wrong.value), await redis.function_load(LIBRARY)]
    seen += [
        await redis.fcall("put", 1, "f", "v"),
        await redis.fcall_ro("look", 1, "f"),
    ]
    return [*seen, await redis.function_list()]


async def streams(redis: Any, connect: Make) -> list[Any]:
    seen = [await redis.xadd("x", {"n": n}, id=f"{n}-1") for n in range(1, 6)]
    seen.append(await redis.xgroup_create("x", "g", id="0"))
    for consumer, count in (("a", 2), ("b", 2)):
        new = await redis.xreadgroup("g", consumer, {"x": ">"}, count=count)
        seen.append(new)
    seen.append(await redis.xack("x", "g", "1-1"))
    seen.append(await redis.xclaim("x", "g", "b", 0, ["2-1"]))
    seen.append(await redis.xautoclaim("x", "g", "c", 0, "0-0", count=1))
    waiting = asyncio.create_task(
        connect().xreadgroup("g", "d", {"x": ">"}, count=9, block=9000)
    )
    seen.append(await waiting)
    waiting = asyncio.create_task(connect().xread({"x": "$"}, block=9000))
    while not (await redis.info("clients"))["blocked_clients"]:
        pass
    await redis.xadd("x", {"n": "6"}, id="6-1")
    seen.append(await waiting)
    seen.append(await redis.xreadgroup("g", "a", {"x": "0"}))
    seen.append((await redis.xpending("x", "g"))["pending"])
    seen.append(await redis.xtrim("x", maxlen=3, approximate=False))
    return [*seen, await redis.xrange("x"), await redis.xread({"none": "0"}, block=5)]


async def blocking(redis: Any, connect: Make) -> list[Any]:
    waiting = [
        asyncio.create_task(connect().blpop(["l", "m"], timeout=0)),
        asyncio.create_task(connect().blmove("from", "to", 0, "LEFT", "RIGHT")),
        asyncio.create_task(connect().bzpopmin(["z"], timeout=0)),
    ]
    while (await redis.info("clients"))["blocked_clients"] != len(waiting):
        pass
    await redis.rpush("m", "1", "2")
    await redis.rpush("from", "3")
    await redis.zadd("z", {"member": 1})
    seen = list(await asyncio.gather(*waiting))
    return [*seen, await redis.blpop(["l"], timeout=0.01), await redis.wait(0, 1)]


async def published(redis: Any, connect: Make) -> list[Any]:
    listener, seen = connect().pubsub(), []

    async def heard(count: int) -> list[Any]:
        return [await listener.get_message(timeout=30) for _ in range(count)]

    await listener.subscribe("a", "b")
    await listener.psubscribe("c*")
    await listener.ssubscribe("d")
    seen += sorted(map(str, await heard(4)))
    seen.append([await redis.publish(name, "hi") for name in ("a", "cc", "none")])
    seen.append(await redis.spublish("d", "hi"))
    seen += await heard(3)
    await listener.unsubscribe("a")
    await listener.punsubscribe()
    await listener.sunsubscribe()
    seen += sorted(map(str, await heard(3)))
    seen.append(await redis.publish("a", "nobody"))
    seen.append(await redis.pubsub_numsub("a", "b"))
    await listener.aclose()
    return seen


PARTS = [pipelines, transactions, scripts, streams, blocking, published]
Part = Callable[[Any, Make], Awaitable[list[Any]]]


async def run(bench: Any, part: Part, protocol: int, *, relayed: bool) -> Any:
    """What the client got, and what it left."""
    await bench.trial()

    def connect() -> Any:
        return (bench.connect if relayed else bench.direct)(protocol=protocol)

    got = await part(connect(), connect), await bench.service.view()
    await bench.hang_up()
    assert bool(bench.gate.record.events) == (relayed and part is not published)
    return got


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("part", PARTS)
async def test_results_are_equal_with_and_without_the_relay(
    on_redis: Make, part: Part, protocol: int
) -> None:
    async with on_redis() as bench:
        direct = await run(bench, part, protocol, relayed=False)
        relayed = await run(bench, part, protocol, relayed=True)
        again = await run(bench, part, protocol, relayed=False)
        assert relayed == direct == again


async def test_what_is_pushed_keeps_its_place_among_replies(on_redis: Make) -> None:
    """A cache that hears of a change before it hears the value keeps it for ever."""
    lines = (b"CLIENT TRACKING ON", b"MULTI", b"GET k", b"SET k v", b"EXEC", b"GET k")
    lines = (*lines, b"SET k w", b"GETSET k x", b"GET k", b"DEL k", b"PING")

    async def said(reader: Any, writer: Any) -> bytes:
        writer.write(b"HELLO 3\r\n")
        await reader.readuntil(b"modules\r\n*0\r\n")
        writer.write(b"".join(line + b"\r\n" for line in lines))
        got: bytes = await reader.readuntil(b"+PONG\r\n")
        writer.close()
        return got

    async with on_redis() as bench:
        direct = await said(*await asyncio.open_unix_connection(bench.socket))
        await bench.trial()
        relayed = await said(*await asyncio.open_connection("127.0.0.1", bench.port))
        assert relayed == direct
        assert relayed.count(b"invalidate") >= 2
