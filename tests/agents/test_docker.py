"""A life in a container: how it ends, what it gets and writes, and that nothing stays.

Its engine, its containers and its image are real. The agents speak to the test through
an abstract unix socket, which containers on this machine's network share with it.
"""

import asyncio
import inspect
import os
import pickle
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import psutil
import pytest

from chaoskit.agents import CampaignFolder, Command, Exit, LaunchError
from chaoskit.agents.docker import life as docker_life
from chaoskit.agents.docker.engine import CAMPAIGN_LABEL
from chaoskit.agents.docker.launcher import DockerLauncher
from chaoskit.model.manifest import Disk

Launching = Callable[..., AbstractAsyncContextManager[DockerLauncher]]
WAITS = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n"
KILLED = Exit(code=None, signal=signal.SIGKILL, orphans=0)


@pytest.fixture
def engine() -> Any:
    """The test's own line to the engine."""
    api = docker.APIClient(version="auto")
    yield api
    api.close()


@pytest.fixture
def left_in(engine: Any) -> Callable[[str], list[str]]:
    """What of a campaign is in the engine: containers, images."""

    def look(campaign: str) -> list[str]:
        label = {"label": f"{CAMPAIGN_LABEL}={campaign}"}
        found = [
            *engine.containers(all=True, filters=label),
            *engine.images(all=True, filters=label),
        ]
        return [each["Id"] for each in found]

    return look


@pytest.fixture
def launching(
    stage: Any, docker_image: str, left_in: Callable[[str], list[str]]
) -> Launching:
    """A launcher, closed after use: then its campaign has nothing in the engine."""

    @asynccontextmanager
    async def launch(
        disk: Disk = Disk.FRESH, image: str = docker_image
    ) -> AsyncIterator[DockerLauncher]:
        with CampaignFolder(stage.folder) as folder:
            launcher = DockerLauncher(image, disk, folder.path)
            try:
                yield launcher
            finally:
                await launcher.close()
            assert left_in(folder.id) == []

    return launch


@pytest.fixture
def agent(stage: Any) -> Callable[..., Command]:
    """A Python program of the image that may `tell(...)`, `daemonize()`, `stay()`."""

    def make(code: str, run: str = "run-1", **env: str) -> Command:
        code = stage.prelude + inspect.cleandoc(code)
        variables = {"CHAOSKIT_RUN_ID": run, **env}
        command: Command = stage.command("python", "-S", "-E", "-c", code)
        return replace(command, env=variables)

    return make


@pytest.mark.parametrize("code", [0, 75, 137])
async def test_an_exit_code_is_reported_also_one_that_looks_like_a_signal(
    launching: Launching, agent: Any, code: int
) -> None:
    async with launching() as launcher:
        life = await launcher.start(agent(f"tell(0); sys.exit({code})"))
        assert await life.wait() == Exit(code=code, signal=None, orphans=0)


async def test_kill_is_a_sigkill_and_every_awaiter_hears_of_it(
    launching: Launching, agent: Any, stage: Any
) -> None:
    async with launching() as launcher:
        life = await launcher.start(agent("tell(0); stay()"))
        await stage.hear()
        waiting = [asyncio.create_task(life.wait()) for _ in range(3)]
        assert await life.kill() == KILLED
        assert await asyncio.gather(*waiting) == [KILLED] * 3
        assert [await life.kill_one(), await life.wait()] == [KILLED] * 2


async def test_a_death_by_its_own_fault_is_told_from_an_exit(
    launching: Launching, agent: Any, stage: Any
) -> None:
    """The engine says 139 for both; it crashes once it is held."""
    crash = "lambda *_: __import__('ctypes').string_at(0)"
    code = f"signal.signal(signal.SIGUSR1, {crash}); tell(0); stay()"
    async with launching() as launcher:
        life = await launcher.start(agent(code))
        await stage.hear()
        await life.signal(signal.SIGUSR1)
        assert await life.wait() == Exit(code=None, signal=signal.SIGSEGV, orphans=0)


async def test_one_that_ends_before_it_was_looked_at_is_no_foreign_one(
    launching: Launching, agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has ended is in no cgroup, while the engine still calls it there."""
    monkeypatch.setattr(docker_life, "_is_in", lambda pid, container: False)
    async with launching() as launcher:
        life = await launcher.start(agent("os._exit(3)"))
        assert (await life.wait()).code == 3


async def test_processes_that_are_not_here_are_an_engine_elsewhere(
    launching: Launching, agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker_life, "_is_in", lambda pid, container: False)
    monkeypatch.setattr(docker_life, "SECONDS_TO_KNOW", 0.1)
    async with launching() as launcher:
        with pytest.raises(LaunchError, match="not to be seen here"):
            await (await launcher.start(agent("stay()"))).wait()


async def test_a_kill_at_once_after_the_start_still_lands(
    launching: Launching, agent: Any
) -> None:
    """The handle is there before the agent is: a kill waits for it, and kills it."""
    async with launching() as launcher:
        life = await launcher.start(agent("stay()"))
        assert (await life.kill()).signal == signal.SIGKILL


async def test_a_kill_takes_children_and_daemons_along_and_counts_them(
    launching: Launching, agent: Any, stage: Any
) -> None:
    code = """
    if child := os.fork():
        os.waitpid(child, 0)
    elif daemonize():
        tell(2)
        stay()
    else:
        os._exit(0)
    if not os.fork():
        tell(1)
        stay()
    stay()
    """
    async with launching() as launcher:
        life = await launcher.start(agent(code))
        assert sorted([await stage.hear(), await stage.hear()]) == [[1], [2]]
        await life.written()  # what it tells may be here before its number is
        pids = life.pids()
        assert life.pid == pids[0]
        assert len(pids) == 3
        assert (await life.kill()).orphans == 2
        assert not any(map(psutil.pid_exists, pids))


async def test_an_exit_takes_them_along_too(
    launching: Launching, agent: Any, stage: Any
) -> None:
    code = """
    if not os.fork():
        tell(0)
        stay()
    signal.sigwait({signal.SIGUSR1})
    """
    async with launching() as launcher:
        life = await launcher.start(agent(WAITS + inspect.cleandoc(code)))
        await stage.hear()
        pids = life.pids()
        await life.signal(signal.SIGUSR1)
        assert (await life.wait()).code == 0
        assert not any(map(psutil.pid_exists, pids))


async def test_signals_reach_the_first_process(
    launching: Launching, agent: Any, stage: Any
) -> None:
    code = """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    tell(0)
    stay()
    """
    async with launching() as launcher:
        life = await launcher.start(agent(code))
        await stage.hear()
        await life.signal(signal.SIGTERM)
        assert (await life.wait()).code == 3
        await life.signal(signal.SIGTERM)  # nothing to a life that has ended


async def test_a_paused_life_does_nothing_until_it_goes_on(
    launching: Launching, agent: Any, stage: Any
) -> None:
    async with launching() as launcher:
        life = await launcher.start(agent("while True: tell(time.monotonic())"))
        await stage.hear()
        await life.pause()
        before = time.monotonic()
        await (await launcher.start(agent("pass"))).wait()
        after = time.monotonic()
        # What it had sent until then is heard first; nothing was sent between the two.
        await life.go_on()
        while (sent := (await stage.hear())[0]) < after:
            assert sent < before
        await life.pause()
        assert (await life.kill()).signal == signal.SIGKILL


async def test_output_goes_to_its_files_whole_and_apart(
    launching: Launching, agent: Any, stage: Any
) -> None:
    """Many lines on both, up to the last byte before the end."""
    code = """
    for n in range(20000):
        print("out", n)
        print("err", n, file=sys.stderr)
    print("end", end="")
    """
    stage.stdout.write_text("kept\n")
    async with launching() as launcher:
        await (await launcher.start(agent(code))).wait()
    out = "".join(f"out {n}\n" for n in range(20000))
    assert stage.stdout.read_text() == f"kept\n{out}end"
    assert stage.stderr.read_text() == "".join(f"err {n}\n" for n in range(20000))
    assert stage.stderr.stat().st_mode & 0o777 == 0o600


async def test_what_was_written_before_a_message_is_there_when_asked_for(
    launching: Launching, agent: Any, stage: Any
) -> None:
    """A line, half a line, and as much as a pipe holds; nothing is added to them."""
    code = """
    for n in range(50):
        print("x" * n * 2000, n, flush=True)
        os.write(2, b"%d-" % n)
        tell(n)
        signal.sigwait({signal.SIGUSR1})
    """
    out = err = ""
    async with launching() as launcher:
        life = await launcher.start(agent(WAITS + inspect.cleandoc(code)))
        for n in range(50):
            await stage.hear()
            await life.written()
            out += f"{'x' * n * 2000} {n}\n"
            err += f"{n}-"
            assert stage.stdout.read_text() == out
            assert stage.stderr.read_text() == err
            await life.signal(signal.SIGUSR1)
        await life.wait()
        await life.written()
    assert (stage.stdout.read_text(), stage.stderr.read_text()) == (out, err)


async def test_an_agent_that_points_its_output_elsewhere_is_let_alone(
    launching: Launching, agent: Any, stage: Any
) -> None:
    code = """
    mine, end = os.pipe()
    os.dup2(end, 1)
    os.close(2)
    tell(0)
    signal.sigwait({signal.SIGUSR1})
    os.set_blocking(mine, False)
    try:
        tell("disturbed", os.read(mine, 99).decode())
    except BlockingIOError:
        tell("left alone")
    """
    async with launching() as launcher:
        life = await launcher.start(agent(WAITS + inspect.cleandoc(code)))
        await stage.hear()
        await life.written()
        await life.signal(signal.SIGUSR1)
        assert await stage.hear() == ["left alone"]
        await life.wait()


async def test_the_environment_is_the_images_with_the_commands_over_it(
    launching: Launching, agent: Any, stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_HARNESS", "1")
    async with launching() as launcher:
        await launcher.start(agent("tell(dict(os.environ), os.getcwd())", MINE="a=b"))
        variables, folder = await stage.hear()
    assert variables.keys() - {"LC_CTYPE"} == {
        *("PATH", "HOME", "HOSTNAME", "PYTHONPATH", "CHAOSKIT_RUN_ID", "MINE")
    }
    assert (variables["PATH"], variables["MINE"]) == ("/usr/bin", "a=b")
    assert folder == "/srv/agent"


async def test_an_images_entry_point_comes_before_the_command(
    launching: Launching, stage: Any, engine: Any, docker_image: str
) -> None:
    made = engine.create_container(docker_image, ["python"])["Id"]
    change = 'ENTRYPOINT ["python", "-c", "import sys; print(sys.argv[1:])"]'
    image = engine.commit(made, changes=[change])["Id"]
    engine.remove_container(made)
    try:
        async with launching(image=image) as launcher:
            command = replace(stage.command("--task", "7"), env={})
            assert (await (await launcher.start(command)).wait()).code == 0
        assert stage.stdout.read_text() == "['--task', '7']\n"
    finally:
        engine.remove_image(image)


async def test_the_world_on_loopback_can_be_reached_and_its_peer_is_known(
    launching: Launching, agent: Any, stage: Any
) -> None:
    code = """
    with socket.create_connection(("127.0.0.1", int(sys.argv[-1]))) as line:
        print(line.recv(9).decode())
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        server.setblocking(False)
        command = agent(code)
        async with launching() as launcher:
            life = await launcher.start(
                replace(command, argv=(*command.argv, str(port)))
            )
            other = await launcher.start(agent("stay()"))
            line, client = await asyncio.get_running_loop().sock_accept(server)
            assert life.is_peer(client, ("127.0.0.1", port))
            assert not other.is_peer(client, ("127.0.0.1", port))
            line.send(b"hello")
            line.close()
            await life.wait()
            await other.kill()
    assert stage.stdout.read_text() == "hello\n"


async def test_the_state_folder_is_bound_at_its_own_path(
    launching: Launching, agent: Any, stage: Any
) -> None:
    folder = stage.folder / "state"
    folder.mkdir()
    (folder / "in").write_text("ours")
    code = """
    folder = os.environ["CHAOSKIT_STATE_DIR"]
    open(folder + "/out", "w").write(open(folder + "/in").read())
    """
    async with launching() as launcher:
        life = await launcher.start(agent(code, CHAOSKIT_STATE_DIR=str(folder)))
        assert (await life.wait()).code == 0
    assert (folder / "out").read_text() == "ours"


async def test_more_memory_than_the_limit_is_a_death(
    launching: Launching, agent: Any, stage: Any
) -> None:
    command = replace(agent("x = bytearray(1 << 30)"), memory_bytes=64 << 20)
    async with launching() as launcher:
        assert (await (await launcher.start(command)).wait()) == KILLED


COUNT = """
path = "/var/count"
n = int(open(path).read()) if os.path.exists(path) else 0
with open(path + ".new", "w") as file:
    file.write(str(n + 1))
    file.flush()
    os.fsync(file.fileno())
os.rename(path + ".new", path)
tell(n, sorted(os.environ.keys() & {"ONCE", "ALWAYS"}))
stay()
"""


async def test_a_fresh_disk_is_the_images_in_every_life(
    launching: Launching, agent: Any, stage: Any
) -> None:
    async with launching(Disk.FRESH) as launcher:
        for _ in range(3):
            life = await launcher.start(agent(COUNT.replace("/var", "/tmp")))
            assert (await stage.hear())[0] == 0
            await life.kill()


async def test_a_kept_disk_goes_through_the_lives_of_a_run_and_no_further(
    launching: Launching, agent: Any, stage: Any
) -> None:
    """What one life wrote the next one reads; another run begins with the image."""
    code = COUNT.replace("/var", "/tmp")
    async with launching(Disk.KEEP) as launcher:
        for run in ("run-1", "run-2"):
            for n in range(3):
                life = await launcher.start(agent(code, run))
                assert (await stage.hear())[0] == n
                await life.kill()


async def test_a_kept_disk_keeps_no_variables(
    launching: Launching, agent: Any, stage: Any
) -> None:
    code = COUNT.replace("/var", "/tmp")
    async with launching(Disk.KEEP) as launcher:
        for given in ({"ONCE": "1"}, {}, {}):
            life = await launcher.start(agent(code, ALWAYS="1", **given))
            assert (await stage.hear())[1] == ["ALWAYS", *given]
            await life.kill()


async def test_a_kept_disk_keeps_the_volumes_of_the_image(
    launching: Launching, agent: Any, stage: Any, engine: Any, docker_image: str
) -> None:
    """An image may declare that its state lies in a volume, which no commit holds."""
    made = engine.create_container(docker_image, ["python"])["Id"]
    image = engine.commit(made, changes=["VOLUME /state"])["Id"]
    engine.remove_container(made)
    before = {each["Name"] for each in engine.volumes()["Volumes"] or ()}
    try:
        async with launching(Disk.KEEP, image) as launcher:
            for run in ("run-1", "run-2"):
                for n in range(3):
                    code = COUNT.replace("/var", "/state")
                    life = await launcher.start(agent(code, run))
                    assert (await stage.hear())[0] == n
                    await life.kill()
        after = {each["Name"] for each in engine.volumes()["Volumes"] or ()}
        assert after <= before
    finally:
        engine.remove_image(image)


async def test_a_kept_disk_is_for_one_life_at_a_time(
    launching: Launching, agent: Any
) -> None:
    async with launching(Disk.KEEP) as launcher:
        await launcher.start(agent("stay()"))
        with pytest.raises(LaunchError, match="expected `disk: fresh`"):
            await launcher.start(agent("stay()"))


async def test_two_lives_at_once_and_killing_one_leaves_the_other(
    launching: Launching, agent: Any, stage: Any
) -> None:
    async with launching() as launcher:
        first, second = await asyncio.gather(
            *[launcher.start(agent("tell(0); stay()")) for _ in range(2)]
        )
        await stage.hear()
        await stage.hear()
        await first.kill()
        await second.written()  # its number is known from here on
        assert psutil.pid_exists(second.pid)
        assert not psutil.pid_exists(first.pid)


async def test_closing_ends_what_still_runs(
    launching: Launching, agent: Any, stage: Any
) -> None:
    """The fixture sees that the engine has nothing of it."""
    async with launching() as launcher:
        life = await launcher.start(agent("tell(0); stay()"))
        await stage.hear()
    assert (await life.wait()).signal == signal.SIGKILL


async def test_a_start_that_is_cancelled_leaves_nothing(
    launching: Launching, agent: Any
) -> None:
    """Wherever it was: before the container is made, while it is, and after."""
    async with launching() as launcher:
        await launcher.warm()
        for turns in range(0, 12, 3):
            start = asyncio.create_task(launcher.start(agent("stay()")))
            for _ in range(turns):
                await asyncio.sleep(0.002)
            start.cancel()
            await asyncio.wait([start])


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("nothing-like-it", "cannot run 'nothing-like-it' in the container"),
        ("/srv/nothing", "cannot run '/srv/nothing' in the container"),
        ("/srv", "may not run '/srv' in the container"),
    ],
)
async def test_a_program_that_is_not_in_the_image_is_told_in_words(
    launching: Launching, stage: Any, program: str, words: str
) -> None:
    async with launching() as launcher:
        life = await launcher.start(replace(stage.command(program, "x"), env={}))
        with pytest.raises(LaunchError, match=words) as caught:
            await life.wait()
        assert f"the command was: {program} x" in str(caught.value)
        with pytest.raises(LaunchError, match=words):
            await life.kill()


async def test_an_image_that_is_not_there_is_told_with_a_remedy(
    launching: Launching, agent: Any
) -> None:
    async with launching(image="no-such-agent:1") as launcher:
        for call in (launcher.warm(), launcher.start(agent("stay()"))):
            with pytest.raises(LaunchError, match="docker build -t no-such-agent:1"):
                await call


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("unix:///nowhere/docker.sock", "none answers at unix:///nowhere"),
        ("tcp://127.0.0.1:2375", "expected an engine of this machine"),
    ],
)
async def test_an_engine_that_is_not_there_is_told_with_a_remedy(
    stage: Any, agent: Any, monkeypatch: pytest.MonkeyPatch, address: str, words: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    launcher = DockerLauncher("agent", Disk.FRESH, stage.folder)
    with pytest.raises(LaunchError, match=words):
        await launcher.start(agent("stay()"))
    await launcher.close()


async def test_a_clock_cannot_be_set_in_a_container(
    stage: Any,
) -> None:
    with pytest.raises(LaunchError, match="launch: process"):
        DockerLauncher("agent", Disk.FRESH, stage.folder).clock()


WORKER = """
import asyncio, os, signal
from pathlib import Path
from chaoskit.agents import CampaignFolder, Command
from chaoskit.agents.docker.launcher import DockerLauncher
from chaoskit.model.manifest import Disk
async def main():
    folder = CampaignFolder(Path({temporary!r}))
    launcher = DockerLauncher({image!r}, Disk.KEEP, folder.path)
    here = Path({temporary!r})
    argv = ("python", "-S", "-c", "import signal; signal.pause()")
    command = Command(argv, here, {{}}, here / "out", here / "err")
    await (await launcher.start(command)).kill()
    life = await launcher.start(command)
    await life.written()
    tell(folder.id, life.pid)
    signal.pause()
asyncio.run(main())
"""


async def test_what_a_killed_campaign_left_is_removed_by_the_next(
    stage: Any, docker_image: str, left_in: Callable[[str], list[str]], tmp_path: Path
) -> None:
    """A running container, and the layers of its disk; others' are not touched."""
    code = WORKER.format(temporary=str(tmp_path), image=docker_image)
    worker, other = stage.worker(code), stage.worker(code)
    try:
        campaigns = [await stage.hear(), await stage.hear()]
        worker.kill()
        worker.wait()
        with CampaignFolder.fresh(tmp_path):
            alive = [name for name, _ in campaigns if left_in(name)]
            assert len(alive) == 1
            assert [psutil.pid_exists(pid) for name, pid in campaigns if name in alive]
    finally:
        other.kill()
        other.wait()
        with CampaignFolder.fresh(tmp_path):
            assert not any(left_in(name) for name, _ in campaigns)
    assert not any(os.path.exists(f"/proc/{pid}") for _, pid in campaigns)


async def test_where_the_kernel_cannot_tell_a_signal_is_one_that_we_sent(
    launching: Launching, agent: Any, stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Linux 6.15 there is the engine's number only."""
    monkeypatch.setattr(docker_life, "wait_status", lambda _: None)
    async with launching() as launcher:
        life = await launcher.start(agent("sys.exit(137)"))
        assert await life.wait() == Exit(code=137, signal=None, orphans=0)
        life = await launcher.start(agent("tell(0); stay()"))
        await stage.hear()
        assert await life.kill() == KILLED


async def test_what_the_engine_refuses_can_be_told_from_a_worker(
    launching: Launching, agent: Any
) -> None:
    """A worker's error travels to the campaign in its own words."""
    async with launching() as launcher:
        await launcher.warm()
        command = replace(agent("stay()"), memory_bytes=1)  # docker's least is 6 MB
        with pytest.raises(LaunchError, match="refused") as caught:
            await launcher.start(command)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
