"""What a relay adds to a request: shared by the benchmarks of the two relays.

One server, one client process, one relay process with a gate that writes its history
to a file, as a trial does. Each request is sent directly (TCP, as through the relay)
and through the relay, in turn, so that whatever else the machine does is shared;
results must be equal. What counts is the median that is added.
"""

import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from chaoskit.gate import FreshNames, Gate, Recorder
from chaoskit.model.history import Cause
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule

ROUNDS = 1000
AIM_MICROSECONDS = 100
SECRET = "not-in-any-of-this"

Request = Callable[[Any], Any]
Requests = Mapping[str, tuple[int, Request]]
"""Name -> how many requests it is, and what it does."""
Start = Callable[[Path], Awaitable[Any]]
"""Starts a service in a folder."""
Addresses = Callable[[Any], Awaitable[tuple[str, str]]]
"""Opens life 0 of a service: the address through the relay, and the server's own."""
SCENARIO = {
    "name": "relay-cost",
    "agent": "agent.yaml",
    "task": {"goal": "none"},
    "llm": {"script": [{"say": "Done."}]},
}


async def nobody(life: int, cause: Cause) -> None:
    """No life is ended here."""


async def _serve(
    start: Start, addresses: Addresses, schedule: str, folder: Path, told: Connection
) -> None:
    service = await start(folder)
    with (folder / "history.jsonl").open("w", 1, encoding="utf-8") as sink:
        record, due = Recorder(sink, SECRET), Schedule.parse(schedule)
        gate = Gate(record, FreshNames("run-1"), due, nobody)
        await service.reset(gate, Scenario.model_validate(SCENARIO))
        told.send(await addresses(service))
        await asyncio.to_thread(told.recv)
        await service.stop()


def serve(*words: Any) -> None:
    """The relay's process: tells both addresses, and ends when it is told to."""
    asyncio.run(_serve(*words))


def _measured(relayed: Any, direct: Any, request: Request, rounds: int) -> Any:
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


def compare(relayed: Any, direct: Any, requests: Requests, rounds: int) -> float:
    """Print a line for each kind of request; returns the worst that was added."""
    worst = 0.0
    print(f"{'median of ' + str(rounds):22} relayed   direct  ratio  added/request")
    for name, (count, request) in requests.items():
        both = _measured(relayed, direct, request, rounds)
        slow, fast = (statistics.median(each) * 1e6 for each in both)
        added = (slow - fast) / count
        worst = max(worst, added)
        print(f"{name:22} {slow:7.0f} {fast:8.0f} {slow / fast:6.1f} {added:9.0f} us")
    return worst


def measure(
    start: Start,
    addresses: Addresses,
    clients: Callable[[str, str], float],
    schedule: str = "",
) -> None:
    """Serve in one process, have clients compare in this one, and print the worst."""
    with tempfile.TemporaryDirectory() as folder:
        here, there = multiprocessing.Pipe()
        words = start, addresses, schedule, Path(folder), there
        relay = multiprocessing.get_context("spawn").Process(target=serve, args=words)
        relay.start()
        try:
            worst = clients(*here.recv())
        finally:
            here.send("end")
            relay.join()
    print(f"worst: {worst:.0f} us added per request; the aim is {AIM_MICROSECONDS} us")
