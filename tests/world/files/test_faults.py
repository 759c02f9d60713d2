"""What each fault is on `files`, seen by a process that makes plain system calls."""

import errno
import time
from contextlib import asynccontextmanager

import pytest

SAVE = """
import os
def tried(do, *args):
    try:
        print(do(*args))
    except OSError as error:
        print(error.errno)
with open("state", "xb", buffering=0) as file:
    tried(file.write, b"0123456789")
    tried(os.fsync, file.fileno())
    tried(file.write, b"abcdef")
"""
CLEAN = "10\nNone\n6\n"
WRITE = "0:files.write[state]"
SYNC_FOLDER = """
folder = os.open(".", os.O_RDONLY)
os.fsync(folder)
"""
RENAMED = """
with open("new", "xb") as file:
    file.write(b"newer")
os.rename("new", "state")
"""


@pytest.fixture
def trial(on_disk):
    """A trial with a schedule, and the next one after it, which has no trace of it."""

    @asynccontextmanager
    async def run(schedule):
        async with on_disk() as bench:
            await bench.trial(schedule)
            yield bench
            assert bench.fired() == [schedule]
            await bench.trial()
            assert await bench.run(SAVE) == CLEAN
            assert await bench.content() == {"state": "0123456789abcdef"}
            assert bench.fired() == []

    return run


@pytest.mark.parametrize(("edge", "left"), [("before", ""), ("after", "0123456789")])
async def test_kill(trial, edge, left):
    async with trial(f"kill@{WRITE}#1:{edge}") as bench:
        ended = await bench.live(SAVE)
        assert ended.signal == 9
        assert bench.out.read_text() == "", "it was never let go"
        assert await bench.content() == {"state": left}


@pytest.mark.proves("files.error")
@pytest.mark.parametrize(("edge", "left"), [("before", "abcdef"), ("after", None)])
@pytest.mark.parametrize("name", ["EIO", "ENOSPC", "EROFS"])
async def test_error(trial, edge, left, name):
    async with trial(f"error({name})@{WRITE}#1:{edge}") as bench:
        said = await bench.run(SAVE)
        assert said == f"{getattr(errno, name)}\nNone\n6\n"
        # Whoever is told that a write failed has not moved on in the file.
        assert await bench.content() == {"state": left or "abcdef6789"}


@pytest.mark.proves("files.error")
async def test_an_error_without_an_argument_is_an_input_output_error(trial):
    async with trial("error@0:files.fsync[state]#1:before") as bench:
        assert await bench.run(SAVE) == f"10\n{errno.EIO}\n6\n"
        assert await bench.content("unsynced") == {"state": None}


@pytest.mark.proves("files.full")
async def test_full_is_met_once(trial):
    async with trial(f"full@{WRITE}#1:before") as bench:
        assert await bench.run(SAVE) == f"{errno.ENOSPC}\nNone\n6\n"
        assert await bench.content() == {"state": "abcdef"}


@pytest.mark.proves("files.delay")
@pytest.mark.parametrize("edge", ["before", "after"])
async def test_delay(trial, edge):
    other = "if not os.fork():\n    os.mkdir('other')\n    os._exit(0)\n"
    async with trial(f"delay(0.3)@{WRITE}#1:{edge}") as bench:
        began = time.monotonic()
        assert await bench.run(other + SAVE + "os.wait()") == CLEAN
        assert time.monotonic() - began >= 0.3
        assert bench.crossed().index("mkdir[other]#1:after") < bench.crossed().index(
            "write[state]#2:before"
        ), "others pass meanwhile"


@pytest.mark.proves("files.tear")
@pytest.mark.parametrize("part", [1, 5, 9])
async def test_tear(trial, part):
    async with trial(f"tear@{WRITE}#1:part:{part}") as bench:
        ended = await bench.live(SAVE)
        assert (ended.signal, bench.out.read_text()) == (9, "")
        assert await bench.content() == {"state": "0123456789"[:part]}
        assert await bench.run("print(open('state').read())") == (
            "0123456789"[:part] + "\n"
        )


@pytest.mark.proves("agent.powerloss")
@pytest.mark.parametrize(
    ("at", "left"),
    [
        ("fsync[state]#1:before", {"state": ""}),
        ("fsync[state]#1:after", {"state": "0123456789"}),
        ("write[state]#2:after", {"state": "0123456789"}),
        ("rename[state]#1:after", {"state": "0123456789"}),
        ("fsync[.]#2:after", {"state": ""}),
    ],
)
async def test_powerloss(trial, at, left):
    """Data is there as it was synced; a rename may save the name of an empty file."""
    saved = SAVE.replace(
        "    tried", SYNC_FOLDER.replace("\n", "\n    ") + "\n    tried", 1
    )
    async with trial(f"powerloss@0:files.{at}") as bench:
        ended = await bench.live(saved + RENAMED + "os.fsync(folder)")
        assert ended.signal == 9
        assert await bench.content() == left
        assert await bench.content("unsynced") == {}
        assert await bench.run("print(*os.listdir(), open('state').read())") == (
            f"state {left['state']}\n"
        )


@pytest.mark.proves("agent.powerloss")
async def test_powerloss_takes_names_that_were_never_synced(trial):
    async with trial(f"powerloss@{WRITE}#2:after") as bench:
        await bench.live(SAVE)
        assert await bench.content() == {}, "the file was synced, its folder was not"


@pytest.mark.proves("agent.powerloss")
@pytest.mark.parametrize(
    ("loss", "left"),
    [
        ("all", {}),
        ("data", {"state": ""}),
        ("names", {}),
        ("some", {"state": "0123456789abcdef"}),
    ],
)
async def test_powerloss_with_a_say_in_what_is_lost(trial, loss, left):
    async with trial(f"powerloss({loss})@0:files.rename[state]#1:after") as bench:
        await bench.live(SAVE + RENAMED)
        assert await bench.content() == left


async def test_the_next_life_sees_no_trace_of_what_the_kernel_had_in_mind(on_disk):
    """Not a page, a size or a name of before the loss comes from its caches."""
    async with on_disk() as bench:
        await bench.trial("powerloss@0:files.write[big]#2:after")
        write = "f = open('big', 'a+b', buffering=0); f.write(b'a' * 20000)\n"
        mapped = "import mmap; m = mmap.mmap(f.fileno(), 0); m[0] = 98\n"
        await bench.live("os.mkdir('x')\n" + write + mapped + write)
        assert len(bench.fired()) == 1
        assert await bench.run("print(os.listdir())") == "[]\n"
