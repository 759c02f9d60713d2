"""What the PostgreSQL relay adds to a request: with it and without, in one run.

Run by hand: ``python tests/benchmarks/relay_cost_postgres.py [ROUNDS]``. One server,
one client process with psycopg, one relay process with a gate that writes its history
to a file, as a trial does. Each request is sent directly (TCP, as through the relay)
and through the relay, in turn, so that whatever else the machine does is shared;
results must be equal. What counts is the median that is added.
"""

import asyncio
import multiprocessing
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psycopg

from chaoskit.gate import FreshNames, Gate, Recorder
from chaoskit.model.history import Cause
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.world.listener import LOOPBACK
from chaoskit.world.postgres import Postgres
from chaoskit.world.postgres.own import SETTINGS, OwnServer

ROUNDS = 1000
AIM_MICROSECONDS = 100
VALUE = "x" * 200
SECRET = "not-in-any-of-this"
INSERT = "INSERT INTO log (v) VALUES (%s)"

Request = Callable[[Any], Any]


def read(client: Any) -> Any:
    """One row by its key."""
    return client.execute("SELECT v FROM state WHERE id = %s", (1,)).fetchall()


def read_many(client: Any) -> Any:
    """A hundred rows."""
    return client.execute("SELECT * FROM many").fetchall()


def insert(client: Any) -> Any:
    """A write that commits by itself, with a parameter."""
    return client.execute(INSERT, (VALUE,)).statusmessage


def simple(client: Any) -> Any:
    """The same as a simple query."""
    return client.execute(f"INSERT INTO log (v) VALUES ('{VALUE}')").statusmessage


def transaction(client: Any) -> Any:
    """BEGIN, two writes, COMMIT."""
    with client.transaction():
        insert(client)
        return client.execute("UPDATE state SET v = %s WHERE id = 1", (VALUE,)).rowcount


def pipeline(client: Any) -> Any:
    """Ten writes in one transaction, in one go."""
    with client.pipeline():
        return [client.execute(INSERT, (VALUE,)) for _ in range(10)][-1].statusmessage


REQUESTS: dict[str, tuple[int, Request]] = {
    "SELECT": (1, read),
    "SELECT 100 rows": (1, read_many),
    "INSERT": (1, insert),
    "simple INSERT": (1, simple),
    "BEGIN 2 writes COMMIT": (4, transaction),
    "pipeline of 10 INSERT": (10, pipeline),
}
"""Name -> how many requests it is, and what it does."""


class OnTcp(OwnServer):
    """A server that listens where the relay would, so that both ways are alike."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        with socket.socket() as free:
            free.bind((LOOPBACK, 0))
            self.port = free.getsockname()[1]
        self.settings = {**SETTINGS, "listen_addresses": LOOPBACK}


def scenario() -> Scenario:
    """Any."""
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


async def serve(folder: Path, told: Connection) -> None:
    """The relay's process: tells both addresses, and ends when it is told to."""
    service = Postgres(folder)
    service.server = server = OnTcp(folder)
    await service.start()
    with (folder / "history.jsonl").open("w", 1, encoding="utf-8") as sink:
        gate = Gate(Recorder(sink, SECRET), FreshNames("run-1"), Schedule(), nobody)
        await service.reset(gate, scenario())
        url = (await service.open(0))["DATABASE_URL"]
        told.send((url, f"postgresql://agent@{LOOPBACK}:{server.port}/agent"))
        await asyncio.to_thread(told.recv)
        await service.stop()


def serve_in_process(folder: Path, told: Connection) -> None:
    """A process's main function."""
    asyncio.run(serve(folder, told))


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


def prepare(client: Any) -> None:
    """The tables."""
    client.execute("CREATE TABLE log (id serial PRIMARY KEY, v text)")
    client.execute("CREATE TABLE state (id int PRIMARY KEY, v text)")
    client.execute("INSERT INTO state VALUES (1, 'v')")
    client.execute("CREATE TABLE many AS SELECT generate_series(1, 100), 'text' AS v")


def compare(url: str, direct_url: str, rounds: int) -> float:
    """Print a line for each kind of request; returns the worst that was added."""
    worst = 0.0
    with (
        psycopg.connect(url, autocommit=True) as one,
        psycopg.connect(direct_url, autocommit=True) as other,
    ):
        prepare(one)
        print(f"{'median of ' + str(rounds):22} relayed   direct  ratio  added/request")
        for name, (count, request) in REQUESTS.items():
            both = measured(one, other, request, rounds)
            relayed, direct = (statistics.median(each) * 1e6 for each in both)
            added = (relayed - direct) / count
            worst = max(worst, added)
            figures = f"{relayed:7.0f} {direct:8.0f} {relayed / direct:6.1f}"
            print(f"{name:22} {figures} {added:9.0f} us")
    return worst


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        here, there = multiprocessing.Pipe()
        relay = multiprocessing.get_context("spawn").Process(
            target=serve_in_process, args=(Path(folder), there)
        )
        relay.start()
        try:
            worst = compare(*here.recv(), rounds)
        finally:
            here.send("end")
            relay.join()
    print(f"worst: {worst:.0f} us added per request; the aim is {AIM_MICROSECONDS} us")


if __name__ == "__main__":
    main()
