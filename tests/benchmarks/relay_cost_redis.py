"""What the Redis relay adds to a request: redis-py with it and without, in one run.

Run by hand: ``python tests/benchmarks/relay_cost_redis.py [--spread] [--due] [N]``. One
server, one client process, one relay process with a gate that writes its history to
a file, as a trial does. Each request is sent directly (TCP, as through the relay) and
through the relay, in turn, so that whatever else the machine does is shared; results
must be equal. What counts is the median that is added.

All run on one processor: then every microsecond of work counts, and where the kernel
happens to put three processes does not. ``--spread`` leaves that to the kernel;
``--due`` measures a trial in which a fault is still due, somewhere else.
"""

import asyncio
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import redis

from chaoskit.gate import FreshNames, Gate, Recorder
from chaoskit.model.history import Cause
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.world.redis import Redis
from chaoskit.world.redis.link import link

ROUNDS = 1000
AIM_MICROSECONDS = 100
VALUE = "x" * 200
DUE = "kill@9:redis.set[k]#1:before"
SECRET = "not-in-any-of-this"

Request = Callable[[Any], Any]


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


REQUESTS: dict[str, tuple[int, Request]] = {
    "GET": (1, lambda client: client.get("agent:0")),
    "SET": (1, lambda client: client.set("agent:checkpoint", VALUE)),
    "HSET": (1, lambda client: client.hset("agent:state", "step", "3")),
    "EVAL": (1, lambda client: client.eval("return ARGV[1]", 1, "agent:k", "v")),
    "MULTI SET EXEC": (3, transaction),
    "pipeline of 10 SET": (10, pipeline),
}
"""Name -> how many commands it is, and what it does."""


def scenario() -> Scenario:
    """Any: the service takes nothing from it."""
    return Scenario.model_validate(
        {
            "name": "relay-cost",
            "agent": "agent.yaml",
            "task": {"goal": "none"},
            "llm": {"script": [{"say": "Done."}]},
        }
    )


async def nobody(life: int, cause: Cause) -> None:
    """No life is ended here."""


async def serve(folder: Path, told: Connection, schedule: Schedule) -> None:
    """The relay's process: tells both ports, and ends when it is told to."""
    service = Redis(folder)
    await service.start()
    with (folder / "history.jsonl").open("w", 1, encoding="utf-8") as sink:
        gate = Gate(Recorder(sink, SECRET), FreshNames("run-1"), schedule, nobody)
        await service.reset(gate, scenario())
        url = (await service.open(0))["REDIS_URL"]
        told.send((url, await also_on_tcp(service)))
        await asyncio.to_thread(told.recv)
        await service.stop()


async def also_on_tcp(service: Redis) -> str:
    """Have the server listen where the relay would, so that both ways are alike."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ours = await link(service.server)
    await ours.do(("CONFIG", "SET", "port", port))
    ours.close()
    return f"redis://127.0.0.1:{port}/0"


def serve_in_process(folder: Path, told: Connection, schedule: str) -> None:
    """A process's main function."""
    asyncio.run(serve(folder, told, Schedule.parse(schedule)))


def measured(relayed: Any, direct: Any, request: Request, rounds: int) -> Any:
    """Seconds of each round: relayed, direct. Results must be equal."""
    for client in (relayed, direct) * 20:
        request(client)
    times: dict[Any, list[float]] = {relayed: [], direct: []}
    for number in range(rounds):
        results = []
        for client in (relayed, direct) if number % 2 else (direct, relayed):
            began = time.perf_counter()
            results.append(request(client))
            times[client].append(time.perf_counter() - began)
        assert results[0] == results[1], results
    return times[relayed], times[direct]


def compare(url: str, direct_url: str, rounds: int) -> float:
    """Print a line for each kind of request; returns the worst that was added."""
    worst = 0.0
    with redis.Redis.from_url(url) as one, redis.Redis.from_url(direct_url) as other:
        print(f"{'median of ' + str(rounds):20} relayed   direct  ratio  added/command")
        for name, (count, request) in REQUESTS.items():
            both = measured(one, other, request, rounds)
            relayed, direct = (statistics.median(each) * 1e6 for each in both)
            added = (relayed - direct) / count
            worst = max(worst, added)
            shown = f"{relayed:7.0f} {direct:8.0f} {relayed / direct:6.1f} {added:9.0f}"
            print(f"{name:20} {shown} us")
    return worst


def main() -> None:
    """Measure and print."""
    words = sys.argv[1:]
    schedule = DUE if "--due" in words else ""
    if "--spread" not in words:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    numbers = [int(word) for word in words if word.isdigit()]
    rounds = numbers[0] if numbers else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        here, there = multiprocessing.Pipe()
        relay = multiprocessing.get_context("spawn").Process(
            target=serve_in_process, args=(Path(folder), there, schedule)
        )
        relay.start()
        try:
            worst = compare(*here.recv(), rounds)
        finally:
            here.send("end")
            relay.join()
    print(f"worst: {worst:.0f} us added per command; the aim is {AIM_MICROSECONDS} us")


if __name__ == "__main__":
    main()
