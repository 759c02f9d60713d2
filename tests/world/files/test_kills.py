"""Whoever dies or stops inside a file operation: the signal comes before the answer."""

import asyncio
import signal
from pathlib import Path

import pytest

from chaoskit.world.files.channel import pending_signals

WORK = """
os.mkdir("d")
with open("d/f", "xb", buffering=0) as file:
    file.write(b"abc")
    os.fsync(file.fileno())
    os.ftruncate(file.fileno(), 2)
os.rename("d/f", "g")
os.link("g", "h")
os.symlink("g", "s")
os.unlink("h")
os.chmod("g", 0o600)
os.rmdir("d")
"""
# Tells on a pipe, which is no part of the folder, if it ever gets to run on.
ONE = "\nos.mkdir('d')\nos.write(1, b'alive')\n"


async def until(true):
    while not true():  # noqa: ASYNC110
        await asyncio.sleep(0)


def is_mounted(folder):
    """Asks the kernel, not the folder: it is this very loop that would answer."""
    return f" {folder} " in Path("/proc/self/mountinfo").read_text()


async def edges_of(bench, code):
    await bench.run(code)
    return [event.address for event in bench.gate.record.events]


async def test_a_kill_at_every_edge_of_every_operation_ends_it_there(on_disk):
    """None hangs on its way out, none goes on, and what is left is what was done."""
    async with on_disk() as bench:
        edges = await edges_of(bench, WORK)
        assert len(edges) == 2 * 11
        for number, edge in enumerate(edges):
            await bench.trial(f"kill@{edge}")
            assert (await bench.live(WORK)).signal == signal.SIGKILL
            crossed = [event.address for event in bench.gate.record.events[:-1]]
            assert crossed == edges[: number + 1]
            assert len(bench.fired()) == 1


@pytest.mark.parametrize("at", ["before", "after"])
async def test_a_killed_process_runs_no_instruction_more(on_disk, at):
    """It dies with the answer unseen, also where it catches whatever can be caught."""
    stubborn = """
import signal
for number in (*range(1, 9), *range(10, 19), *range(20, 32)):
    signal.signal(number, lambda *_: os.write(1, b"caught"))
try:
    os.mkdir("d")
finally:
    os.write(1, b"alive")
"""
    async with on_disk() as bench:
        for _ in range(20):
            await bench.trial(f"kill@0:files.mkdir[d]#1:{at}")
            await bench.live(stubborn)
            assert bench.out.read_text() == ""


async def test_a_kill_reaches_all_threads_and_processes_that_wait(on_disk):
    """One is held, the others queue behind it: in the door, and in the kernel."""
    crowd = """
import threading
def work(name):
    for number in range(100):
        with open(f"{name}-{number}", "xb", buffering=0) as file:
            file.write(b"x")
        os.unlink(f"{name}-{number}")
for name in "abc":
    threading.Thread(target=work, args=name).start()
for name in "de":
    if not os.fork():
        work(name)
        os._exit(0)
"""
    async with on_disk() as bench:
        for number in (3, 20, 70):
            await bench.trial(f"kill@*:files.write[c-{number}]#1:before")
            assert (await bench.live(crowd)).signal == signal.SIGKILL
            assert len(bench.fired()) == 1
            assert await bench.run("print(len(os.listdir()) < 6)") == "True\n"


async def test_other_signals_do_not_disturb_an_operation(on_disk, hold):
    """A disk is not interrupted; and a kill after such a signal still gets through."""
    noisy = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"later "))
os.mkdir("d")
os.write(1, b"done")
"""
    gate = hold("0:files.mkdir[d]#1:before")
    async with on_disk() as bench:
        await bench.trial(watch=gate)
        life = await bench.begin(noisy)
        await gate.held.wait()
        await life.signal(signal.SIGUSR1)
        await until(lambda: pending_signals(life.pid))
        await asyncio.sleep(0.05)  # longer than it takes to look again
        assert bench.out.read_text() == ""
        gate.let_go.set()
        assert (await bench.end()).code == 0
        assert bench.out.read_text() in ("later done", "later \ndone")

        gate.held.clear()
        gate.let_go.clear()
        await bench.trial(watch=gate)
        life = await bench.begin(noisy)
        await gate.held.wait()
        await life.signal(signal.SIGUSR1)
        await until(lambda: pending_signals(life.pid))
        assert (await life.kill()).signal == signal.SIGKILL
        gate.let_go.set()
        await bench.end()
        assert bench.out.read_text() == ""


async def test_a_process_that_a_signal_ends_does_not_wait_for_its_answer(on_disk):
    """SIGTERM that nobody catches is a kill; the operation is done all the same."""
    async with on_disk() as bench:
        await bench.trial("term@0:files.mkdir[d]#1:before")
        assert (await bench.live(ONE)).signal == signal.SIGTERM
        assert bench.out.read_text() == ""
        assert await bench.content() == {"d": True}


async def test_one_that_is_stopped_after_its_operation_stops_with_the_answer(on_disk):
    """So that nobody waits for the lock that the kernel holds for it."""
    at = "0:files.mkdir[d]#1:after"
    async with on_disk() as bench:
        await bench.trial(f"delay(30)@{at}")
        life = await bench.begin(ONE)
        await bench.gate.record.sink.seen("fault")
        await life.pause()
        status = Path(f"/proc/{life.pid}/status")
        await until(lambda: "T (stopped)" in status.read_text())
        assert bench.out.read_text() == ""
        await life.go_on()
        assert (await life.wait()).code == 0
        assert bench.out.read_text() == "alive"
        await bench.end()


async def test_children_of_one_killed_alone_go_on(on_disk):
    code = """
read, write = os.pipe()
if os.fork():
    os.mkdir("root")
    os.write(1, b"alive")
else:
    os.close(write)
    os.read(read, 1)
    os.mkdir("child")
    os.write(1, b"child")
"""
    async with on_disk() as bench:
        await bench.trial("kill_one@0:files.mkdir[root]#1:before")
        life = await bench.begin(code)
        await bench.gate.record.sink.seen("crossed", 4)
        await until(lambda: bench.out.read_text() == "child")
        assert (await life.kill()).orphans in (0, 1)
        await bench.end()
        assert await bench.content() == {"root": True, "child": True}


async def test_two_lives_at_once_share_a_mount_and_are_told_apart(on_disk):
    class Both:
        def __init__(self):
            self.lives = {}

        def process(self, pid):
            found = [n for n, life in self.lives.items() if pid in life.pids()]
            return found[0] if found else None

    code = """
import fcntl, threading
lock = open("lock", "a")
try:
    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    thread = threading.Thread(target=os.mkdir, args=("first",))
except OSError:
    thread = threading.Thread(target=os.mkdir, args=("second",))
thread.start()
thread.join()
os.write(1, b"x")
while True:
    signal.pause()
"""
    async with on_disk() as bench:
        bench.gate.whose = both = Both()
        both.lives[0] = first = await bench.begin("import signal" + code)
        await bench.gate.record.sink.seen("crossed", 4)
        both.lives[1] = second = await bench.begin("import signal" + code)
        await bench.gate.record.sink.seen("crossed", 6)
        addresses = [event.address for event in bench.gate.record.events]
        assert addresses[-2:] == [
            "1:files.mkdir[second]#1:before",
            "1:files.mkdir[second]#1:after",
        ]
        assert addresses[2] == "0:files.mkdir[first]#1:before"
        await first.kill()
        await bench.files.close(0)
        assert is_mounted(bench.files.state_folder)
        await second.kill()
        await bench.files.close(1)
        assert not is_mounted(bench.files.state_folder)


async def test_a_closed_life_that_lives_gets_errors_and_harms_nobody(on_disk):
    code = """
import time
os.mkdir("d")
os.write(1, b".")
while True:
    try:
        os.mkdir("more")
        break
    except OSError as error:
        found = error.errno
        break
os.write(1, str(found).encode())
"""
    async with on_disk() as bench:
        await bench.trial("delay(30)@0:files.mkdir[more]#1:before")
        life = await bench.begin(code)
        await bench.gate.record.sink.seen("fault")
        await bench.files.close(0)
        assert (await life.wait()).code == 0
        bench.gate.close(0)
        await bench.gate.settled(0)
        assert bench.out.read_text() == ".103", "ECONNABORTED"
