"""A life as a program: how it ends, what it gets, what it writes, what it cannot."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaoskit.agents import Exit, LaunchError


async def test_exit_code_is_reported(stage: Any) -> None:
    async with stage.processes() as launcher:
        life = await launcher.start(stage.command("/bin/sh", "-c", "exit 75"))
        assert await life.wait() == Exit(code=75, signal=None, orphans=0)


async def test_signal_is_reported_and_not_taken_for_a_code(stage: Any) -> None:
    async with stage.processes() as launcher:
        life = await launcher.start(stage.command("/bin/sh", "-c", "kill -TERM $$"))
        expected = Exit(code=None, signal=signal.SIGTERM, orphans=0)
        assert await life.wait() == expected


async def test_kill_is_a_sigkill_and_every_awaiter_hears_of_it(stage: Any) -> None:
    async with stage.processes() as launcher:
        life = await launcher.start(stage.command("/bin/sleep", "1000"))
        waiting = [asyncio.create_task(life.wait()) for _ in range(3)]
        killed = await life.kill()
        assert killed == Exit(code=None, signal=signal.SIGKILL, orphans=0)
        assert await asyncio.gather(*waiting) == [killed] * 3
        assert [await life.kill(), await life.wait()] == [killed] * 2


async def test_killing_one_that_has_ended_leaves_its_exit_as_it_was(stage: Any) -> None:
    async with stage.processes() as launcher:
        life = await launcher.start(stage.command("/bin/sh", "-c", "exit 3"))
        await life.wait()
        assert (await life.kill()).code == 3


async def test_a_waiter_that_gives_up_does_not_end_the_life(stage: Any) -> None:
    async with stage.processes() as launcher:
        life = await launcher.start(stage.command("/bin/sleep", "1000"))
        waiting = asyncio.create_task(life.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await life.kill()).signal == signal.SIGKILL


async def test_output_goes_to_its_files_and_input_is_empty(stage: Any) -> None:
    script = "read x || echo out; echo err >&2"
    async with stage.processes() as launcher:
        await (await launcher.start(stage.command("/bin/sh", "-c", script))).wait()
    assert stage.stdout.read_text() == "out\n"
    assert stage.stderr.read_text() == "err\n"
    assert stage.stdout.stat().st_mode & 0o777 == 0o600


async def test_output_is_appended(stage: Any) -> None:
    stage.stdout.write_text("kept\n")
    async with stage.processes() as launcher:
        await (await launcher.start(stage.command("/bin/echo", "new"))).wait()
    assert stage.stdout.read_text() == "kept\nnew\n"


async def test_environment_is_exactly_what_was_given(stage: Any) -> None:
    given = {"A": "1", "EMPTY": "", "ODD": "a=b\nc \udcff"}
    command = stage.command("/bin/cat", "/proc/self/environ", env=given)
    async with stage.processes() as launcher:
        await (await launcher.start(command)).wait()
    pairs = stage.stdout.read_bytes().rstrip(b"\0").split(b"\0")
    assert dict(os.fsdecode(pair).split("=", 1) for pair in pairs) == given


async def test_a_life_leads_a_session_of_its_own_in_its_folder(stage: Any) -> None:
    code = "tell(os.getpid(), os.getpgid(0), os.getsid(0), os.getppid(), os.getcwd())"
    async with stage.processes() as launcher:
        life = await launcher.start(stage.agent(code))
        pid, group, session, parent, folder = await stage.hear()
        assert life.pid == pid == group == session
        assert parent == os.getpid()
        assert folder == str(stage.folder.resolve())


async def test_nothing_of_ours_leaks_into_a_life(stage: Any) -> None:
    ours, other = os.pipe()
    os.set_inheritable(ours, True)
    async with stage.processes() as launcher:
        await launcher.start(stage.agent("tell(sorted(os.listdir('/proc/self/fd')))"))
        ((files),) = await stage.hear()
    os.close(ours)
    os.close(other)
    assert files[:3] == ["0", "1", "2"]
    assert len(files) == 4  # and the one that lists the folder


async def test_signals_are_as_a_shell_gives_them(stage: Any) -> None:
    """Where a worker ignores Ctrl-C, its agents must not."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    command = stage.command("/bin/grep", "-E", "Sig(Blk|Ign)", "/proc/self/status")
    try:
        async with stage.processes() as launcher:
            await (await launcher.start(command)).wait()
    finally:
        signal.signal(signal.SIGINT, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    masks = [int(line.split()[1], 16) for line in stage.stdout.read_text().splitlines()]
    assert masks == [0, 0]


async def test_two_lives_at_once_and_killing_one_leaves_the_other(stage: Any) -> None:
    agent = stage.agent(
        """
        if not os.fork():
            if daemonize():
                tell(os.getppid(), os.getpid())
                stay()
            os._exit(0)
        stay()
        """
    )
    async with stage.processes() as launcher:
        first = await launcher.start(agent)
        _, daemon_of_first = await stage.hear()
        second = await launcher.start(agent)
        _, daemon_of_second = await stage.hear()
        assert (await first.kill()).orphans >= 1
        assert not os.path.exists(f"/proc/{daemon_of_first}")
        for pid in (second.pid, daemon_of_second):
            os.kill(pid, 0)
        assert (await second.kill()).signal == signal.SIGKILL
        assert not os.path.exists(f"/proc/{daemon_of_second}")


async def test_starts_at_the_same_time_do_not_mix(stage: Any) -> None:
    commands = [stage.command("/bin/sh", "-c", f"exit {code}") for code in range(8)]
    async with stage.processes() as launcher:
        lives = await asyncio.gather(*map(launcher.start, commands))
        exits = await asyncio.gather(*(life.wait() for life in lives))
    assert [exit_.code for exit_ in exits] == list(range(8))


async def test_no_descriptor_is_lost_over_many_lives(stage: Any) -> None:
    async with stage.processes() as launcher:
        await (await launcher.start(stage.command("/bin/true"))).wait()
        before = sorted(os.listdir("/proc/self/fd"))
        for _ in range(100):
            await (await launcher.start(stage.command("/bin/true"))).wait()
        assert sorted(os.listdir("/proc/self/fd")) == before


async def test_closing_kills_what_still_runs(stage: Any, is_gone: Any) -> None:
    async with stage.processes() as launcher:
        life = await launcher.start(stage.command("/bin/sleep", "1000"))
    assert is_gone(life.pid)
    assert (await life.wait()).signal == signal.SIGKILL


@pytest.mark.parametrize("turns", [0, 1, 3, 100])
async def test_a_start_that_is_cancelled_leaves_nothing(stage: Any, turns: int) -> None:
    os.mkfifo(stage.stdout)  # nobody reads: the life cannot get ready
    async with stage.processes() as launcher:
        nursery = launcher._nursery
        await launcher.warm()
        start = asyncio.create_task(launcher.start(stage.command("/bin/touch", "ran")))
        for _ in range(turns):
            await asyncio.sleep(0)
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        reader = os.open(stage.stdout, os.O_RDONLY | os.O_NONBLOCK)
        await asyncio.gather(*nursery._births)
        await asyncio.gather(*(life.wait() for life in nursery._lives))
        os.close(reader)
    assert not (stage.folder / "ran").exists()


def _script(stage: Any, text: str, mode: int) -> str:
    path = stage.folder / "script"
    path.write_text(text)
    path.chmod(mode)
    return "./script"


def _missing(stage: Any) -> Any:
    return replace(stage.command("no-such-program"), env={"PATH": "/nowhere"})


def _missing_here(stage: Any) -> Any:
    return stage.command("bin/none")


def _not_executable(stage: Any) -> Any:
    return stage.command(_script(stage, "#!/bin/sh\n", 0o600))


def _no_interpreter(stage: Any) -> Any:
    return stage.command(_script(stage, "#!/nowhere/sh\n", 0o700))


def _not_a_program(stage: Any) -> Any:
    return stage.command(_script(stage, "\x7f ho hum", 0o700))


def _no_folder(stage: Any) -> Any:
    return replace(stage.command("/bin/true"), cwd=stage.folder / "gone")


def _no_output(stage: Any) -> Any:
    return replace(stage.command("/bin/true"), stderr=Path("/proc/nowhere"))


def _empty(stage: Any) -> Any:
    return stage.command()


def _null_byte(stage: Any) -> Any:
    return stage.command("/bin/echo", "a\0b")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (_missing, ["no-such-program", "No such file", "/nowhere", "{python}"]),
        (_missing_here, ["bin/none", "No such file", "expected a program"]),
        (_not_executable, ["./script", "Permission denied", "chmod +x"]),
        (_no_interpreter, ["./script", "No such file", "first line"]),
        (_not_a_program, ["./script", "Exec format error", "#!/bin/sh"]),
        (_no_folder, ["enter the folder", "gone", "No such file"]),
        (_no_output, ["standard error", "/proc/nowhere", "No such file"]),
        (_empty, ["empty"]),
        (_null_byte, ["null byte"]),
    ],
)
async def test_what_cannot_start_says_so_and_leaves_nothing(
    stage: Any, command: Any, words: list[str]
) -> None:
    async with stage.processes() as launcher:
        await launcher.warm()
        await (await launcher.start(stage.command("/bin/true"))).wait()
        before = sorted(os.listdir("/proc/self/fd"))
        with pytest.raises(LaunchError) as caught:
            await launcher.start(command(stage))
        assert [word for word in words if word not in str(caught.value)] == []
        assert sorted(os.listdir("/proc/self/fd")) == before
        life = await launcher.start(stage.command("/bin/true"))
        assert (await life.wait()).code == 0


async def test_a_program_is_found_on_the_path_of_its_own_environment(
    stage: Any,
) -> None:
    _script(stage, "#!/bin/sh\nexit 9\n", 0o700)
    command = stage.command("script", env={"PATH": str(stage.folder)})
    async with stage.processes() as launcher:
        assert (await (await launcher.start(command)).wait()).code == 9


async def test_a_dead_zygote_is_a_launch_error(stage: Any, death_of: Any) -> None:
    async with stage.processes() as launcher:
        life = await launcher.start(stage.agent("tell(os.getppid()); stay()"))
        await stage.hear()
        zygote = (await launcher._nursery.warm()).family.pid
        os.kill(zygote, signal.SIGKILL)
        await death_of(zygote)
        with pytest.raises(LaunchError, match="has ended"):
            await launcher.start(stage.command("/bin/true"))
        assert (await life.kill()).signal == signal.SIGKILL


async def test_a_handle_is_known_before_the_life_is_heard(stage: Any) -> None:
    """A service must never get a message of a life that nobody can kill yet."""
    heard: list[bool] = []
    returned: list[int] = []

    async def listen() -> None:
        await stage.hear()
        heard.append(bool(returned))

    async with stage.processes() as launcher:
        listening = asyncio.create_task(listen())
        returned.append((await launcher.start(stage.agent("tell(1); stay()"))).pid)
        await listening
    assert heard == [True]
