"""A life as a fork of a warm parent: as good as a new interpreter, and faster."""

import asyncio
import os
import signal
import sys
from dataclasses import replace
from typing import Any

import pytest

from chaoskit.agents import ForkLauncher, LaunchError
from chaoskit.agents.fork import seen_by_program

LEAVES_A_THREAD = """
import threading
threading.Thread(target=stay, name='poller', daemon=True).start()
def run(): pass
"""


@pytest.fixture
def warm(stage: Any, close_after: Any) -> Any:
    """Makes a launcher whose lives call `agent:run` of the code given."""

    def make(code: str, *preload: str) -> Any:
        stage.module("agent", code)
        environment = dict(os.environ)
        environment.pop("PYTHONUNBUFFERED", None)
        return close_after(
            ForkLauncher(
                sys.executable, preload, "agent:run", stage.folder, environment
            )
        )

    return make


async def test_modules_are_imported_once_and_each_life_is_a_process(
    stage: Any, warm: Any
) -> None:
    stage.module("heavy", "tell('imported', os.getpid())")
    code = "import heavy\ndef run(): tell('ran', os.getpid(), os.getsid(0))"
    async with warm(code, "heavy") as launcher:
        await launcher.warm()
        imported, parent = await stage.hear()
        assert imported == "imported"
        pids = set()
        for _ in range(3):
            life = await launcher.start(stage.command("agent"))
            assert await stage.hear() == ["ran", life.pid, life.pid]
            assert (await life.wait()).code == 0
            pids.add(life.pid)
    assert len(pids - {parent}) == 3


async def test_arguments_environment_and_folder_are_the_commands(
    stage: Any, warm: Any
) -> None:
    code = """
    def run():
        tell(sys.argv, dict(os.environ), os.getcwd(), os.getppid(), __name__)
    """
    (stage.folder / "sub").mkdir()
    given = {"ONLY": "this", "ODD": "\udcff"}
    command = stage.command(sys.executable, "-m", "agent", "--task", "t-1", env=given)
    async with warm(code) as launcher:
        await launcher.start(replace(command, cwd=stage.folder / "sub"))
        argv, environment, folder, parent, name = await stage.hear()
    assert argv == ["agent", "--task", "t-1"]
    assert environment == given
    assert folder == str(stage.folder.resolve() / "sub")
    assert parent == os.getpid()
    assert name == "agent"


async def test_what_a_life_changes_no_other_life_sees(stage: Any, warm: Any) -> None:
    code = """
    kept = []
    def run():
        tell(kept, os.environ.get('LEFT'))
        kept.append(1)
        os.environ['LEFT'] = 'behind'
    """
    async with warm(code) as launcher:
        for _ in range(3):
            await (await launcher.start(stage.command("agent"))).wait()
            assert await stage.hear() == [[], None]


async def test_lives_draw_different_random_numbers(stage: Any, warm: Any) -> None:
    code = "import random\nrandom.seed(1)\ndef run(): tell(random.random())"
    async with warm(code) as launcher:
        for _ in range(3):
            await (await launcher.start(stage.command("agent"))).wait()
    drawn = [(await stage.hear())[0] for _ in range(3)]
    assert len(set(drawn)) == 3


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("return None", 0, ""),
        ("return 75", 75, ""),
        ("return True", 1, ""),
        ("return 256 + 9", 9, ""),
        ("return 'gave up'", 1, "gave up\n"),
        ("sys.exit()", 0, ""),
        ("sys.exit(65)", 65, ""),
        ("raise SystemExit('no')", 1, "no\n"),
    ],
)
async def test_what_is_returned_or_exited_with_is_the_exit_code(
    stage: Any, warm: Any, body: str, code: int, words: str
) -> None:
    async with warm(f"def run(): {body}") as launcher:
        exit_ = await (await launcher.start(stage.command("agent"))).wait()
    assert exit_.code == code
    assert stage.stderr.read_text() == words


async def test_an_exception_prints_its_traceback_without_our_frames(
    stage: Any, warm: Any
) -> None:
    async with warm("def run(): raise ValueError('broken')") as launcher:
        exit_ = await (await launcher.start(stage.command("agent"))).wait()
    assert exit_.code == 1
    assert stage.stderr.read_text().endswith("ValueError: broken\n")
    assert "zygote" not in stage.stderr.read_text()


async def test_what_modules_print_while_imported_is_in_no_lifes_output(
    stage: Any, warm: Any
) -> None:
    code = "print('imported')\ndef run(): print('ran')"
    async with warm(code) as launcher:
        await (await launcher.start(stage.command("agent"))).wait()
    assert stage.stdout.read_text() == "ran\n"


async def test_a_handle_is_known_before_a_fork_is_heard(stage: Any, warm: Any) -> None:
    """A service must never get a message of a life that nobody can kill yet."""
    known: list[int] = []

    async def listen() -> bool:
        return (await stage.hear())[0] in known

    async with warm("def run(): tell(os.getpid()); stay()") as launcher:
        for _ in range(10):
            listening = asyncio.create_task(listen())
            known.append((await launcher.start(stage.command("agent"))).pid)
            assert await listening


async def test_an_interrupt_ends_it_by_the_signal(stage: Any, warm: Any) -> None:
    code = "def run(): os.kill(os.getpid(), signal.SIGINT); stay()"
    async with warm(code) as launcher:
        exit_ = await (await launcher.start(stage.command("agent"))).wait()
    assert exit_.signal == signal.SIGINT


async def test_a_life_ends_as_an_interpreter_does(stage: Any, warm: Any) -> None:
    """Threads are joined, then exit handlers run, then output is flushed."""
    code = """
    import atexit, threading
    def run():
        go = threading.Event()
        atexit.register(sys.stdout.write, 'handler')
        late = lambda: go.wait() and print('thread')
        threading.Thread(target=late).start()
        print('run')
        go.set()
    """
    async with warm(code) as launcher:
        assert (await (await launcher.start(stage.command("agent"))).wait()).code == 0
    assert stage.stdout.read_text() == "run\nthread\nhandler"


async def test_output_is_written_by_the_line_also_by_a_stream_kept_at_import(
    stage: Any, warm: Any
) -> None:
    """A life that is killed has written what it printed."""
    code = """
    from sys import stdout as kept
    def run():
        print('one', file=kept)
        print('two', file=sys.stderr)
        tell()
        stay()
    """
    async with warm(code) as launcher:
        life = await launcher.start(stage.command("agent"))
        await stage.hear()
        await life.kill()
    assert stage.stdout.read_text() == "one\n"
    assert stage.stderr.read_text() == "two\n"


async def test_descendants_of_a_fork_die_with_it(
    stage: Any, warm: Any, is_gone: Any
) -> None:
    code = """
    def run():
        if daemonize():
            tell(os.getpid())
        stay()
    """
    async with warm(code) as launcher:
        life = await launcher.start(stage.command("agent"))
        (daemon,) = await stage.hear()
        other = await launcher.start(stage.command("agent"))
        await stage.hear()
        exit_ = await life.kill()
        assert (exit_.signal, exit_.orphans) == (signal.SIGKILL, 1)
        assert is_gone(daemon)
        os.kill(other.pid, 0)


async def test_nothing_of_the_parents_leaks_into_a_life(stage: Any, warm: Any) -> None:
    code = "def run(): tell(sorted(os.listdir('/proc/self/fd')))"
    async with warm(code) as launcher:
        await launcher.start(stage.command("agent"))
        (files,) = await stage.hear()
    assert files[:3] == ["0", "1", "2"]
    assert len(files) == 4  # and the one that lists the folder


async def test_no_descriptor_is_lost_over_many_forks(stage: Any, warm: Any) -> None:
    async with warm("def run(): pass") as launcher:
        await (await launcher.start(stage.command("agent"))).wait()
        before = sorted(os.listdir("/proc/self/fd"))
        for _ in range(100):
            await (await launcher.start(stage.command("agent"))).wait()
        assert sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import nothing_of_the_kind", ["agent:run", "nothing_of_the_kind"]),
        ("print('as told')\nraise SystemExit(3)", ["SystemExit: 3"]),
        ("run: int", ["has no attribute 'run'"]),
        ("run = 5", ["'agent:run'", "function"]),
        ("print('last words', flush=True)\nos._exit(9)", ["last words"]),
        (LEAVES_A_THREAD, ["1 thread", "poller"]),
    ],
)
async def test_what_cannot_be_preloaded_is_a_launch_error_each_time(
    warm: Any, stage: Any, code: str, words: list[str]
) -> None:
    async with warm(code) as launcher:
        for attempt in (launcher.warm, lambda: launcher.start(stage.command("agent"))):
            with pytest.raises(LaunchError) as caught:
                await attempt()
            assert [word for word in words if word not in str(caught.value)] == []


async def test_a_thread_that_was_joined_while_importing_is_no_obstacle(
    stage: Any, warm: Any
) -> None:
    code = """
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(str, range(8)))
    def run(): pass
    """
    async with warm(code) as launcher:
        assert (await (await launcher.start(stage.command("agent"))).wait()).code == 0


async def test_an_interpreter_that_is_missing_is_a_launch_error(
    stage: Any, close_after: Any
) -> None:
    launcher = ForkLauncher("/nowhere/python", (), "agent:run", stage.folder, {})
    async with close_after(launcher):
        with pytest.raises(LaunchError, match=r"agent:run.*\n.*/nowhere/python"):
            await launcher.warm()


async def test_a_dead_parent_is_a_launch_error(
    stage: Any, warm: Any, death_of: Any
) -> None:
    async with warm("def run(): tell(1); stay()") as launcher:
        life = await launcher.start(stage.command("agent"))
        await stage.hear()
        parent = (await launcher._nursery.warm()).family.pid
        os.kill(parent, signal.SIGKILL)
        await death_of(parent)
        with pytest.raises(LaunchError, match="has ended"):
            await launcher.start(stage.command("agent"))
        assert (await life.kill()).signal == signal.SIGKILL


async def test_names_of_our_own_modules_are_free_for_the_agents(
    stage: Any, warm: Any
) -> None:
    code = "from importlib.util import find_spec\ndef run(): tell(find_spec('family'))"
    async with warm(code) as launcher:
        await launcher.start(stage.command("agent"))
        assert await stage.hear() == [None]


@pytest.mark.parametrize(
    ("argv", "seen"),
    [
        ("python -m pkg a -m b", "pkg a -m b"),
        ("/usr/bin/python3.12 -u -X dev -m pkg a", "pkg a"),
        ("python script.py a", "script.py a"),
        ("python -c code a", "-c a"),
        ("/opt/interpreter -m pkg", "pkg"),
        ("./agent -m a", "./agent -m a"),
    ],
)
def test_arguments_are_what_the_program_would_see(argv: str, seen: str) -> None:
    words = seen_by_program(tuple(argv.split()), "/opt/interpreter")
    assert " ".join(words) == seen
