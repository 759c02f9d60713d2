"""Records what redis-py and a real server say to each other, for the codec's tests.

Run by hand, after an update of redis-py: ``python tests/wire/record_redis.py``. Each
line of a recording is one read: who spoke, and the bytes.
"""

import asyncio
import base64
import json
import tempfile
from pathlib import Path
from typing import Any

import redis.asyncio as client

from chaoskit.world.redis.own import OwnServer

HERE = Path(__file__).parent / "recordings"
CODE = "#!lua name=lib\nredis.register_function('one', function(k, a) return 1 end)"


class Tee:
    """Passes everything on, and keeps it in the order in which it came."""

    def __init__(self, server: OwnServer) -> None:
        self._server = server
        self._count = 0
        self.lines: list[dict[str, str]] = []

    async def serve(self, reader: Any, writer: Any) -> None:
        number, self._count = self._count, self._count + 1
        there = asyncio.open_unix_connection(self._server._address())
        up_reader, up_writer = await there
        await asyncio.gather(
            self._copy(f"client {number}", reader, up_writer),
            self._copy(f"server {number}", up_reader, writer),
        )

    async def _copy(self, who: str, reader: Any, writer: Any) -> None:
        while data := await reader.read(65536):
            text = base64.b64encode(data).decode()
            self.lines.append({"who": who, "bytes": text})
            writer.write(data)
        writer.close()


async def work(redis: Any) -> None:
    """Some of every kind of message."""
    await redis.set("text", "Zoë", ex=100)
    await redis.get("text")
    await redis.hset("h", mapping={"a": "1", "b": b"\xff\r\n"})
    await redis.hgetall("h")
    await redis.zadd("z", {"m": 1.5, "n": float("inf")})
    await redis.zrange("z", 0, -1, withscores=True)
    await redis.sadd("s", "x", "y")
    await redis.smembers("s")
    await redis.eval("return {1, 'two', {3.5, false}, redis.status_reply('ok')}", 0)
    await redis.register_script("return KEYS")(keys=["k"])
    await redis.function_load(CODE, replace=True)
    await redis.fcall("one", 0)
    await redis.xadd("x", {"f": "v"}, id="1-1")
    await redis.xgroup_create("x", "g", id="0")
    await redis.xreadgroup("g", "c", {"x": ">"}, block=10)
    await redis.xinfo_stream("x", full=True)
    await redis.xclaim("x", "g", "d", 0, ["1-1"])
    await redis.blpop(["none"], timeout=0.01)
    await redis.command_getkeys("SET", "k", "v")
    async with redis.pipeline(transaction=False) as pipe:
        await (
            pipe.set("big", "x" * 5000)
            .get("big")
            .lpush("text", "v")
            .execute(raise_on_error=False)
        )
    async with redis.pipeline() as pipe:
        await pipe.watch("text")
        pipe.multi()
        await pipe.set("k", "v").get("k").hgetall("none").execute()
    async with redis.pubsub() as listener:
        await listener.subscribe("a", "b")
        await listener.psubscribe("c*")
        await listener.ssubscribe("d")
        for channel in ("a", "cc"):
            await redis.publish(channel, "hello")
        await redis.spublish("d", "hello")
        for _ in range(7):
            await listener.get_message(timeout=5)
        await listener.unsubscribe()
        for _ in range(2):
            await listener.get_message(timeout=5)


async def record(protocol: int, folder: Path) -> None:
    """One recording, of both sides."""
    server = OwnServer(folder)
    first = await server.start()
    tee = Tee(server)
    relay = await asyncio.start_server(tee.serve, "127.0.0.1", 0)
    port = relay.sockets[0].getsockname()[1]
    async with client.Redis(port=port, protocol=protocol) as redis:
        await work(redis)
        if protocol == 3:
            await redis.execute_command("CLIENT", "TRACKING", "ON", "BCAST")
            await redis.set("k", "changed")
            await redis.get("k")
    relay.close()
    first.close()
    await server.stop()
    HERE.mkdir(exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in tee.lines)
    (HERE / f"redis_py_resp{protocol}.jsonl").write_text(text)


def main() -> None:
    """Record both protocols."""
    for protocol in (2, 3):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(record(protocol, Path(folder)))


if __name__ == "__main__":
    main()
