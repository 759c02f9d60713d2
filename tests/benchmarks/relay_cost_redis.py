"""What the Redis relay adds to a request: redis-py with it and without, in one run.

Run by hand: ``python tests/benchmarks/relay_cost_redis.py [--spread] [--due] [N]``; see
`relay_cost`.

All run on one processor: then every microsecond of work counts, and where the kernel
happens to put three processes does not. ``--spread`` leaves that to the kernel;
``--due`` measures a trial in which a fault is still due, somewhere else.
"""

import os
import socket
import sys
from functools import partial
from pathlib import Path
from typing import Any

import redis
from relay_cost import ROUNDS, Requests, compare, measure

from chaoskit.world.listener import LOOPBACK
from chaoskit.world.redis import Redis
from chaoskit.world.redis.link import link

VALUE = "x" * 200
DUE = "kill@9:redis.set[k]#1:before"


def transaction(client: Any) -> Any:
    """MULTI, SET, EXEC in one write."""
    with client.pipeline(transaction=True) as pipe:
        return pipe.set("agent:checkpoint", VALUE).execute()


def pipeline(client: Any) -> Any:
    """Ten writes in one write."""
    with client.pipeline(transaction=False) as pipe:
        for number in range(10):
            pipe.set(f"agent:{number}", VALUE)
        return pipe.execute()


REQUESTS: Requests = {
    "GET": (1, lambda client: client.get("agent:0")),
    "SET": (1, lambda client: client.set("agent:checkpoint", VALUE)),
    "HSET": (1, lambda client: client.hset("agent:state", "step", "3")),
    "EVAL": (1, lambda client: client.eval("return ARGV[1]", 1, "agent:k", "v")),
    "MULTI SET EXEC": (3, transaction),
    "pipeline of 10 SET": (10, pipeline),
}


async def start(folder: Path) -> Redis:
    """The service."""
    service = Redis(folder)
    await service.start()
    return service


async def addresses(service: Redis) -> tuple[str, str]:
    """Has the server listen where the relay would, so that both ways are alike."""
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
    ours = await link(service.server)
    await ours.do(("CONFIG", "SET", "port", port))
    ours.close()
    return (await service.open(0))["REDIS_URL"], f"redis://{LOOPBACK}:{port}/0"


def clients(rounds: int, url: str, direct_url: str) -> float:
    """One of each way."""
    with redis.Redis.from_url(url) as one, redis.Redis.from_url(direct_url) as other:
        return compare(one, other, REQUESTS, rounds)


def main() -> None:
    """Measure and print."""
    words = sys.argv[1:]
    if "--spread" not in words:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rounds = next((int(word) for word in words if word.isdigit()), ROUNDS)
    due = DUE if "--due" in words else ""
    measure(start, addresses, partial(clients, rounds), due)


if __name__ == "__main__":
    main()
