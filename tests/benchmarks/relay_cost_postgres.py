"""What the PostgreSQL relay adds to a request: psycopg with it and without, in one run.

Run by hand: ``python tests/benchmarks/relay_cost_postgres.py [--one] [ROUNDS]``; see
`relay_cost`. With ``--one`` all run on one processor, as in `relay_cost_redis`.
"""

import os
import socket
import sys
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from relay_cost import ROUNDS, Requests, compare, measure

from chaoskit.world.listener import LOOPBACK
from chaoskit.world.postgres import Postgres
from chaoskit.world.postgres.own import SETTINGS, OwnServer

VALUE = "x" * 200
INSERT = "INSERT INTO log (v) VALUES (%s)"


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


REQUESTS: Requests = {
    "SELECT": (1, read),
    "SELECT 100 rows": (1, read_many),
    "INSERT": (1, insert),
    "simple INSERT": (1, simple),
    "BEGIN 2 writes COMMIT": (4, transaction),
    "pipeline of 10 INSERT": (10, pipeline),
}


class OnTcp(OwnServer):
    """A server that listens where the relay would, so that both ways are alike."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        with socket.socket() as free:
            free.bind((LOOPBACK, 0))
            self.port = free.getsockname()[1]
        self.settings = {**SETTINGS, "listen_addresses": LOOPBACK}


async def start(folder: Path) -> Postgres:
    """The service."""
    service = Postgres(folder)
    service.server = OnTcp(folder)
    await service.start()
    return service


async def addresses(service: Any) -> tuple[str, str]:
    """Both ways to the server."""
    url = (await service.open(0))["DATABASE_URL"]
    return url, f"postgresql://agent@{LOOPBACK}:{service.server.port}/agent"


def prepare(client: Any) -> None:
    """The tables."""
    client.execute("CREATE TABLE log (id serial PRIMARY KEY, v text)")
    client.execute("CREATE TABLE state (id int PRIMARY KEY, v text)")
    client.execute("INSERT INTO state VALUES (1, 'v')")
    client.execute("CREATE TABLE many AS SELECT generate_series(1, 100), 'text' AS v")


def clients(rounds: int, url: str, direct_url: str) -> float:
    """One of each way."""
    with (
        psycopg.connect(url, autocommit=True) as one,
        psycopg.connect(direct_url, autocommit=True) as other,
    ):
        prepare(one)
        return compare(one, other, REQUESTS, rounds)


def main() -> None:
    """Measure and print."""
    words = sys.argv[1:]
    if "--one" in words:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rounds = next((int(word) for word in words if word.isdigit()), ROUNDS)
    measure(start, addresses, partial(clients, rounds))


if __name__ == "__main__":
    main()
