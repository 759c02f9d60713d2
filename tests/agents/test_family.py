"""All of a life ends with it: daemons, children that resist, ones that keep forking."""

import asyncio
import os
import signal
from typing import Any

import pytest

from chaoskit.agents import family
from chaoskit.agents.linux import children, look

GRANDCHILDREN = """
if not os.fork():
    if not os.fork():
        tell(os.getpid())
        stay()
    stay()
"""
DAEMON = """
if daemonize():
    tell(os.getpid())
    stay()
"""
BARE_DAEMON = """
if daemonize():
    os.closerange(0, 100)
    os.chdir('/')
    code = PRELUDE + "tell(os.getpid()); stay()"
    os.execve(sys.executable, [sys.executable, '-S', '-E', '-c', code], {})
"""
DEAF = """
if not os.fork():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    tell(os.getpid())
    stay()
"""
STOPPED = """
child = os.fork()
if not child:
    stay()
os.kill(child, signal.SIGSTOP)
os.waitid(os.P_PID, child, os.WSTOPPED)
tell(child)
"""
HEADLESS = """
if daemonize():
    import ctypes, platform, threading
    def live_on():
        while look(os.getpid()) != 'Z':
            os.sched_yield()
        tell(os.getpid())
        stay()
    def look(pid):
        return open(f'/proc/{pid}/stat').read().rpartition(') ')[2][0]
    threading.Thread(target=live_on).start()
    exit_of_one_thread = {'x86_64': 60, 'aarch64': 93}[platform.machine()]
    ctypes.CDLL(None).syscall(exit_of_one_thread, 0)
"""
WHEN_TOLD = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})"
THEN_END = "signal.sigwait({signal.SIGUSR1}); os._exit(7)"
KINDS = {
    "grandchildren": (GRANDCHILDREN, 2),
    "daemon": (DAEMON, 1),
    "daemon without session, files, folder and environment": (BARE_DAEMON, 1),
    "deaf": (DEAF, 1),
    "stopped": (STOPPED, 1),
    "alive but for its first thread": (HEADLESS, 1),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> tuple[str, int]:
    return KINDS[request.param]


def _agent(stage: Any, code: str, then: str) -> Any:
    return stage.agent(f"PRELUDE = {stage.prelude!r}\n{code}\n{then}")


async def test_kill_takes_every_descendant_along(
    stage: Any, kind: tuple[str, int], is_gone: Any
) -> None:
    code, count = kind
    async with stage.processes() as launcher:
        life = await launcher.start(_agent(stage, code, "stay()"))
        (pid,) = await stage.hear()
        exit_ = await life.kill()
        assert exit_.signal == signal.SIGKILL
        assert exit_.orphans == count
        assert is_gone(pid)
        assert is_gone(life.pid)


async def test_a_root_that_ends_by_itself_takes_them_along_too(
    stage: Any, kind: tuple[str, int], is_gone: Any
) -> None:
    code, count = kind
    async with stage.processes() as launcher:
        life = await launcher.start(_agent(stage, WHEN_TOLD + code, THEN_END))
        (pid,) = await stage.hear()
        os.kill(life.pid, signal.SIGUSR1)
        exit_ = await life.wait()
        assert exit_.code == 7
        assert exit_.orphans == count
        assert is_gone(pid)


async def test_a_daemon_that_is_heir_to_a_dead_root_is_found(
    stage: Any, is_gone: Any
) -> None:
    """Its parents are dead and reaped long before the kill."""
    async with stage.processes() as launcher:
        life = await launcher.start(_agent(stage, DAEMON, "tell(0); stay()"))
        (pid,) = max([await stage.hear(), await stage.hear()])
        assert pid in children(os.getpid())
        assert (await life.kill()).orphans == 1
        assert is_gone(pid)


async def test_processes_that_keep_forking_into_new_sessions_are_outrun(
    stage: Any,
) -> None:
    """Each is alive for a moment only, and is never where it was last seen."""
    code = """
    for _ in range(12):
        if not os.fork():
            tell()
            while True:
                if os.fork():
                    os._exit(0)
                os.setsid()
    stay()
    """
    async with stage.processes() as launcher:
        life = await launcher.start(stage.agent(code))
        for _ in range(12):
            await stage.hear()
        assert (await life.kill()).signal == signal.SIGKILL


async def test_the_dead_that_a_life_leaves_to_us_do_not_add_up(stage: Any) -> None:
    """Or to look at its processes would take longer with each daemon that it had."""
    code = """
    for _ in range(20):
        if daemonize():
            os._exit(0)
    tell()
    stay()
    """
    async with stage.processes() as launcher:
        life = await launcher.start(stage.agent(code))
        await stage.hear()
        while len(life.pids()) > 1:  # noqa: ASYNC110
            await asyncio.sleep(0)
        left = [each for pid in children(os.getpid()) if (each := look(pid))]
        assert not [each for each in left if each.zombie]
        assert (await life.kill()).orphans == 0


async def test_one_that_dies_while_it_is_looked_at_is_reaped_too(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was alive a moment ago, and is dead before it can be killed."""

    def look_as_it_dies(pid: int) -> Any:
        if pid == daemon:
            os.kill(pid, signal.SIGKILL)
            while not ((seen := look(pid)) and seen.zombie):
                pass
        return look(pid)

    async with stage.processes() as launcher:
        life = await launcher.start(_agent(stage, WHEN_TOLD + DAEMON, THEN_END))
        (daemon,) = await stage.hear()
        monkeypatch.setattr(family, "look", look_as_it_dies)
        os.kill(life.pid, signal.SIGUSR1)
        exit_ = await life.wait()
        assert (exit_.code, exit_.orphans) == (7, 0)
        assert daemon not in children(os.getpid())


async def test_a_child_that_had_ended_before_is_no_orphan(stage: Any) -> None:
    code = """
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    """
    async with stage.processes() as launcher:
        life = await launcher.start(stage.agent(code))
        exit_ = await life.wait()
        assert (exit_.code, exit_.orphans) == (0, 0)


async def test_what_is_not_of_the_life_is_left_alone(stage: Any) -> None:
    """Other children of the worker survive a life: a server, and what it forked."""
    command = stage.agent(DAEMON + "tell(0); stay()").argv
    with stage.child(command) as server:
        (daemon,) = max([await stage.hear(), await stage.hear()])
        async with stage.processes() as launcher:
            life = await launcher.start(stage.command("/bin/sleep", "1000"))
            assert (await life.kill()).orphans == 0
        assert server.poll() is None
        os.kill(daemon, signal.SIGKILL)
        server.kill()
