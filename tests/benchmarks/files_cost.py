"""What the folder adds to a file operation: the same work in it and in a plain folder.

Run by hand: ``python tests/benchmarks/files_cost.py [ROUNDS] [PLAIN_FOLDER]``. One
client process; one process that serves the folder, with a gate that writes its history
to a file, as a trial does. Each piece of work is done in the plain folder and in the
served one, in turn, and must leave the same content in both. The plain folder is in
/dev/shm if there is one, so that the speed of a real disk stays out of it. What counts
is the median that is added to one crossing, with the looks that come with it: a name is
looked up afresh each time, since nothing of the folder is kept by the kernel.

Both run on one processor: then every microsecond of work counts, and where the kernel
happens to put two processes does not.
"""

import asyncio
import multiprocessing
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from chaoskit.gate import FreshNames, Gate, Recorder
from chaoskit.model.history import Cause
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.world.files import Files

ROUNDS = 300
STATE = b'{"checkpoint_id": 7, "transcript": "%s"}' % (b"x" * 4000)

Work = Callable[[Path, int], None]


def append(folder: Path, number: int) -> None:
    """One line more in a log, synced."""
    with (folder / "log").open("ab", buffering=0) as file:
        file.write(b"line %d\n" % number)
        os.fsync(file.fileno())


def save(folder: Path, number: int) -> None:
    """A state file replaced as it should be: written, synced, renamed, synced."""
    with (folder / "new").open("wb", buffering=0) as file:
        file.write(STATE + b"%d" % number)
        os.fsync(file.fileno())
    (folder / "new").rename(folder / "state")
    place = os.open(folder, os.O_RDONLY)
    os.fsync(place)
    os.close(place)


def overwrite(folder: Path, number: int) -> None:
    """Nothing but one write."""
    file = _handle(folder / "page")
    os.pwrite(file, STATE, 4096 * (number % 4))


def read(folder: Path, number: int) -> None:
    """Nothing but one read, which crosses nothing."""
    assert os.pread(_handle(folder / "page"), 4000, 0) is not None


def commit(mode: str) -> Work:
    """A transaction of SQLite's."""

    def work(folder: Path, number: int) -> None:
        db = _database(folder / f"{mode}.db", mode)
        db.execute("INSERT INTO t (value) VALUES (?)", (STATE,))

    return work


WORKS: dict[str, Work] = {
    "read": read,
    "write": overwrite,
    "append, fsync": append,
    "save atomically": save,
    "SQLite WAL": commit("WAL"),
    "SQLite DELETE": commit("DELETE"),
}
_open: dict[Path, Any] = {}


def _handle(path: Path) -> int:
    if path not in _open:
        _open[path] = os.open(path, os.O_RDWR | os.O_CREAT)
    return int(_open[path])


def _database(path: Path, mode: str) -> sqlite3.Connection:
    if path not in _open:
        db = _open[path] = sqlite3.connect(path, isolation_level=None)
        db.execute(f"PRAGMA journal_mode = {mode}")
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, value)")
    found = _open[path]
    assert isinstance(found, sqlite3.Connection)
    return found


async def _serve(folder: Path, line: Connection) -> None:
    async def end_life(life: int, cause: Cause) -> None:
        raise AssertionError("nothing is killed here")

    files = Files(folder)
    await files.start()
    scenario = Scenario.model_validate(
        {
            "name": "cost",
            "agent": "agent.yaml",
            "task": {"goal": "none"},
            "llm": {"script": [{"say": "Done."}]},
        }
    )
    with (folder / "history").open("w") as sink:
        gate = Gate(Recorder(sink), FreshNames("run-1"), Schedule(), end_life)
        await files.reset(gate, scenario)
        line.send((await files.open(0))["CHAOSKIT_STATE_DIR"])
        while await asyncio.to_thread(line.recv):
            line.send(len(gate.record.events) // 2)
        await files.stop()


def serve(folder: Path, line: Connection) -> None:
    """The other process: the folder, and how many messages have crossed."""
    asyncio.run(_serve(folder, line))


def _timed(work: Work, folder: Path, number: int) -> float:
    began = time.perf_counter()
    work(folder, number)
    return (time.perf_counter() - began) * 1e6


def measure(plain: Path, served: Path, line: Connection, rounds: int) -> None:
    """Print a line for each piece of work."""
    print(f"{'work':18}{'plain':>10}{'served':>10}{'crossings':>11}{'added each':>12}")
    for name, work in WORKS.items():
        for folder in (plain, served):
            work(folder, 0)
        before = _crossed(line)
        times = [
            (_timed(work, plain, n), _timed(work, served, n)) for n in range(rounds)
        ]
        each = (_crossed(line) - before) / rounds
        slow, fast = (statistics.median(side) for side in zip(*times, strict=True))
        added = (fast - slow) / max(each, 1)
        print(f"{name:18}{slow:8.0f}us{fast:8.0f}us{each:11.2f}{added:10.0f}us")


def _crossed(line: Connection) -> int:
    line.send(True)
    return int(line.recv())


def _is_equal(plain: Path, served: Path) -> bool:
    names = sorted(path.name for path in plain.iterdir() if path.suffix == "")
    rows = "SELECT id, value FROM t"
    return all(
        (plain / name).read_bytes() == (served / name).read_bytes() for name in names
    ) and all(
        _database(plain / f"{mode}.db", mode).execute(rows).fetchall()
        == _database(served / f"{mode}.db", mode).execute(rows).fetchall()
        for mode in ("WAL", "DELETE")
    )


def main() -> None:
    """Measure, and see that both folders hold the same."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    place = sys.argv[2] if len(sys.argv) > 2 else memory
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    ours, its = multiprocessing.Pipe()
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory(dir=place) as plain,
    ):
        server = multiprocessing.get_context("spawn").Process(
            target=serve, args=(Path(folder), its)
        )
        server.start()
        served = Path(ours.recv())
        measure(Path(plain), served, ours, rounds)
        assert _is_equal(Path(plain), served), "the folders differ"
        for each in _open.values():
            os.close(each) if isinstance(each, int) else each.close()
        ours.send(False)
        server.join()


if __name__ == "__main__":
    main()
