"""The same schedule on Redis gives the same crossings, in the same order, each time."""

from typing import Any

import pytest
import redis.asyncio as client
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from chaoskit.model.history import Crossed, FaultFired

FULL_TIMES, REDUCED_TIMES = 100, 10
LIMIT_SECONDS = 100


async def work(url: str) -> list[str]:
    """What an agent might do, trying once more where its connection is lost."""
    seen = []
    redis = client.Redis.from_url(url, retry=Retry(NoBackoff(), 2))
    await redis.xgroup_create("x", "g", id="0", mkstream=True)
    for step in range(4):
        async with redis.pipeline(transaction=True) as pipe:
            pipe.set("a", step).expire("a", 100)
            seen.append(await _said(pipe.execute))
        async with redis.pipeline(transaction=False) as pipe:
            pipe.xadd("x", {"step": step}, id=f"{step + 1}-1").get("a")
            pipe.rpush("log", step).incr("steps")
            seen.append(await _said(pipe.execute))
        seen.append(await _said(redis.xreadgroup, "g", "c", {"x": ">"}))
        seen.append(await _said(redis.eval, "return redis.call('LLEN', 'log')", 0))
        seen.append(await _said(redis.blpop, ["log"], 0.02))
        seen.append(await _said(redis.mget, "a", "steps"))
    await redis.aclose()
    return seen


async def _said(do: Any, *words: Any) -> str:
    try:
        return str(await do(*words))
    except client.RedisError as problem:
        return type(problem).__name__


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "drop_reply@0:redis.exec[a]#2:after",
        "refuse@0:redis.rpush[log]#1:before + tear@0:redis.eval#3:part:1",
        "error(OOM)@0:redis.exec[a]#1:before + error@0:redis.xadd[x]#2:after",
        "restart@0:redis.incrby[steps]#2:after + restart@0:redis.xadd[x]#4:before",
        "rollback(2)@0:redis.incrby[steps]#3:after",
        "expire@0:redis.exec[a]#2:after + full@0:redis.rpush[log]#4:before",
    ],
)
async def test_a_schedule_repeats_to_the_letter(
    on_redis: Any, request: Any, schedule: str
) -> None:
    """100 of 100 with --full; the results, the end and the history are one."""
    times = FULL_TIMES if request.config.getoption("--full") else REDUCED_TIMES
    runs = []
    async with on_redis(seconds_max=LIMIT_SECONDS) as bench:
        for _ in range(times):
            await bench.trial(schedule)
            seen = await work(bench.url)
            events = [
                event.address if isinstance(event, Crossed) else event.fault
                for event in bench.gate.record.events
                if isinstance(event, Crossed | FaultFired)
            ]
            assert bench.gate.unfired == []
            runs.append((seen, events, await bench.service.view()))
    assert len(runs) == times
    assert all(run == runs[0] for run in runs)
