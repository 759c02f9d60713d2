"""What may be done to a life beside a kill: to its root alone, or to stop it."""

import asyncio
import errno
import os
import signal
import socket
from dataclasses import replace
from typing import Any

import pytest

from chaoskit.agents import Exit, LaunchError, ProcessLauncher
from chaoskit.agents.clock import WallClock
from chaoskit.agents.connections import inode_of
from chaoskit.agents.linux import look

KILLED = signal.SIGKILL


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


LEAVES = """
if os.fork() == 0:
    tell('child', os.getpid())
    stay()
if daemonize():
    tell('daemon', os.getpid())
    stay()
stay()
"""


async def _started(stage: Any, launcher: Any, code: str) -> tuple[Any, dict[str, int]]:
    life = await launcher.start(stage.agent(code))
    return life, dict([await stage.hear() for _ in range(2)])


async def test_kill_one_reaps_the_root_and_no_other(
    stage: Any, is_gone: Any, death_of: Any
) -> None:
    """Its number is free, as under a parent that waits; `kill` ends the rest."""
    async with stage.processes() as launcher:
        life, others = await _started(stage, launcher, LEAVES)
        assert await life.kill_one() == Exit(None, KILLED, orphans=2)
        assert is_gone(life.pid)
        assert [is_gone(pid) for pid in others.values()] == [False, False]
        waiting = asyncio.create_task(life.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        assert set(life.pids()) == set(others.values())
        assert await life.kill() == Exit(None, KILLED, orphans=2)
        assert await waiting == Exit(None, KILLED, orphans=2)
        assert all(map(is_gone, others.values()))


async def test_what_kill_one_left_ends_with_the_launcher(
    stage: Any, is_gone: Any
) -> None:
    async with stage.processes() as launcher:
        life, others = await _started(stage, launcher, LEAVES)
        await life.kill_one()
    assert all(map(is_gone, others.values()))


async def test_kill_one_of_a_life_that_has_ended_is_its_own_exit(stage: Any) -> None:
    async with stage.processes() as launcher:
        life = await launcher.start(stage.command("/bin/sh", "-c", "exit 3"))
        await life.wait()
        assert await life.kill_one() == Exit(3, None, 0)
        assert (await life.kill()).code == 3


async def test_a_signal_goes_to_the_group_and_not_to_who_left_it(stage: Any) -> None:
    """As from a terminal: the root and its child, and not the daemon."""
    code = """
    def caught(number, frame):
        tell(name, number)
    name = 'root'
    signal.signal(signal.SIGTERM, caught)
    if os.fork() == 0:
        name = 'child'
    elif daemonize():
        name = 'daemon'
    tell('ready', name)
    stay()
    """
    async with stage.processes() as launcher:
        life = await launcher.start(stage.agent(code))
        ready = [await stage.hear() for _ in range(3)]
        assert sorted(name for _, name in ready) == ["child", "daemon", "root"]
        await life.signal(signal.SIGTERM)
        assert sorted([await stage.hear() for _ in range(2)]) == [
            ["child", 15],
            ["root", 15],
        ]
        assert (await life.kill()).signal == KILLED


async def test_a_signal_to_a_life_that_has_ended_is_nothing(stage: Any) -> None:
    async with stage.processes() as launcher:
        life = await launcher.start(stage.command("/bin/true"))
        await life.wait()
        await life.signal(signal.SIGTERM)
        await life.pause()
        await life.go_on()
        assert life.pids() == ()


async def test_a_pause_stops_every_process_and_each_goes_on(stage: Any) -> None:
    """A daemon and one that never sleeps too; a kill reaches those that are stopped."""
    code = LEAVES.replace(
        "tell('child', os.getpid())\n    stay()",
        "tell('child', os.getpid())\n    while True: pass",
    )
    async with stage.processes() as launcher:
        life, others = await _started(stage, launcher, code)
        pids = [life.pid, *others.values()]
        await life.pause()
        assert [_state(pid) for pid in pids] == ["T", "T", "T"]
        await life.go_on()
        assert "T" not in [_state(pid) for pid in pids]
        await life.pause()
        assert await life.kill() == Exit(None, KILLED, orphans=2)


async def test_a_connection_is_known_by_whoever_holds_its_end(stage: Any) -> None:
    """The root's, a child's, and nobody's of another life; closed ones are nobody's."""
    code = """
    ours = socket.create_connection(('127.0.0.1', PORT))
    if os.fork() == 0:
        ours.close()
        ours = socket.create_connection(('127.0.0.1', PORT))
    stay()
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        async with stage.processes() as launcher:
            code = code.replace("PORT", str(port))
            lives = [await launcher.start(stage.agent(code)) for _ in range(2)]
            loop = asyncio.get_running_loop()
            accepted = [await loop.sock_accept(server) for _ in range(4)]
            ends = [(client, ours.getsockname()) for ours, client in accepted]
            known = [[life.is_peer(*end) for life in lives] for end in ends]
            assert sorted(known) == [[False, True]] * 2 + [[True, False]] * 2
            for ours, _ in accepted:
                ours.close()
            with socket.create_connection(("127.0.0.1", port)) as own:
                end = (own.getsockname(), ("127.0.0.1", port))
                assert inode_of(*end) is not None
                assert not any(life.is_peer(*end) for life in lives)
            assert inode_of(*end) is None


async def test_files_are_inherited_under_the_number_that_their_variable_holds(
    stage: Any,
) -> None:
    """One digit for a program, as some shells know no more; nothing else is open."""
    code = """
    number = int(os.environ['LINE'])
    os.write(number, b'x')
    tell(number, [n for n in range(99) if os.path.exists(f'/proc/self/fd/{n}')])
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        async with stage.processes() as launcher:
            order = replace(stage.agent(code), inherit={"LINE": theirs.fileno()})
            await (await launcher.start(order)).wait()
            number, files = await stage.hear()
            assert number < 10
            assert files == [0, 1, 2, number]
            assert ours.recv(1) == b"x"
            # And the next life gets none of it.
            code = "tell('LINE' in os.environ, len(os.listdir('/proc/self/fd')))"
            await (await launcher.start(stage.agent(code))).wait()
            assert await stage.hear() == [False, 4]


async def test_a_limit_of_memory_holds_for_each_process_of_a_life(stage: Any) -> None:
    """What is too much raises in the agent's own way, in a child too."""
    code = """
    pid = os.fork()
    try:
        bytearray(2**29)
    except MemoryError:
        tell('too much')
    if pid:
        os.waitpid(pid, 0)
    """
    limit = 2**28
    async with stage.processes() as launcher:
        order = replace(stage.agent(code), memory_bytes=limit)
        assert (await (await launcher.start(order)).wait()).code == 0
        assert [await stage.hear() for _ in range(2)] == [["too much"]] * 2
        free = stage.agent("bytearray(2**29)")
        assert (await (await launcher.start(free)).wait()).code == 0


async def test_a_limit_of_files_holds_for_what_a_life_prints(stage: Any) -> None:
    """Who prints without an end would fill the disk, and the memory that reads it."""
    code = """
    try:
        while True:
            print("x" * 1000, flush=True)
    except OSError as error:
        tell(os.strerror(error.errno))
        os._exit(1)
    """
    async with stage.processes() as launcher:
        order = replace(stage.agent(code), file_bytes=2**20)
        assert (await (await launcher.start(order)).wait()).code == 1
        assert await stage.hear() == [os.strerror(errno.EFBIG)]
        assert order.stdout.stat().st_size == 2**20


async def test_a_clock_needs_a_folder_and_a_compiler(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are asked for in words, when a clock is wanted and not before."""
    async with stage.processes() as launcher:
        with pytest.raises(LaunchError, match="no folder"):
            await launcher.start(replace(stage.agent("0"), clock=True))
    monkeypatch.setenv("PATH", str(stage.folder))
    launcher = ProcessLauncher(stage.folder / "clock")
    with pytest.raises(LaunchError, match="apt-get install gcc"):
        await launcher.start(replace(stage.agent("0"), clock=True))
    await launcher.close()


async def test_a_compiler_that_fails_is_quoted(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = stage.folder / "cc"
    compiler.write_text("#!/bin/sh\necho no headers >&2\nexit 1\n")
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(LaunchError, match="no headers"):
        WallClock(stage.folder / "clock").variables()


async def test_who_sees_the_clock_is_known(stage: Any) -> None:
    """A program that was started without it is not governed; one that is gone is."""
    async with stage.processes() as plain:
        clock = WallClock(stage.folder / "clock")
        assert clock.variables("other.so")["LD_PRELOAD"].endswith(
            "libclock.so:other.so"
        )
        life = await plain.start(stage.agent("tell(1)\nstay()"))
        await stage.hear()
        assert not clock.governs(life.pid)
        await life.kill()
        assert clock.governs(life.pid)
        assert look(life.pid) is None
