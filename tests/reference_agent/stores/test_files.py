"""What only the file store has: torn tails, damage with a place, moved logs, turns.

What every store must do is in `test_files_conformance`, contention and SIGKILL too.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import Any

import pytest

from reference_agent.stores import event_log, files_due
from reference_agent.stores.base import (
    Fenced,
    Held,
    Store,
    StoreUnavailable,
    UnreadableCheckpoint,
)
from reference_agent.stores.event_log import EventLog
from reference_agent.stores.files import FileStore

ROOT = Path(__file__).parents[3]
LONG = 3600.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a run in it that was saved three times."""
    store = FileStore(tmp_path / "runs")
    store.create("r", {"n": 0, "messages": []})
    token = taken(store, "a").token
    for number in (1, 2, 3):
        store.save("r", token, document(number))
    store.close()
    return tmp_path / "runs"


def document(number: int) -> dict[str, Any]:
    return {"n": number, "messages": [f"message {each}" for each in range(number)]}


def taken(store: Store, owner: str, over: str | None = None) -> Held:
    held = store.take("r", owner, LONG, over=over)
    assert held is not None, "it is not to be had"
    return held


def loaded(folder: Path) -> Held:
    held = FileStore(folder).load("r")
    assert held is not None, "it is not there"
    return held


def log_of(folder: Path) -> Path:
    return max((folder / "r.run").glob("*.log"), key=lambda path: int(path.stem))


def content(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def goes_on(folder: Path, before: dict[str, Any]) -> None:
    """The next holder finds that document, and keeps another."""
    store = FileStore(folder)
    held = taken(store, "next", over=loaded(folder).owner)
    assert held.document == before
    store.save("r", held.token, {"n": "next"})
    store.close()
    assert loaded(folder).document == {"n": "next"}


def test_a_tail_torn_at_any_byte_is_ignored_and_never_continued(folder: Path) -> None:
    """What was there stays, byte for byte, and what comes next is read."""
    log = log_of(folder)
    whole = log.read_bytes()
    begin = whole[:-1].rindex(b"\n") + 1
    for cut in range(begin, len(whole)):
        log.write_bytes(whole[:cut])
        # Of a line that lacks nothing but its end, all is there.
        goes_on(folder, document(3 if cut == len(whole) - 1 else 2))
        assert log.read_bytes().startswith(whole[:cut])


def test_a_last_line_with_a_wrong_byte_is_a_torn_tail(folder: Path) -> None:
    """Blocks may reach the disk in any order, the line's end first."""
    log = log_of(folder)
    whole = log.read_bytes()
    begin = whole[:-1].rindex(b"\n") + 1
    for place in range(begin, len(whole) - 1):
        log.write_bytes(spoilt(whole, place))
        goes_on(folder, document(2))


def test_two_who_died_in_their_line_leave_two_torn_tails(folder: Path) -> None:
    """The second had begun on a new line."""
    log = log_of(folder)
    with log.open("ab") as file:
        file.write(b'{"number":6,"event":\n{"number":6,"ev')
    goes_on(folder, document(3))


def test_damage_before_the_last_line_is_refused_with_its_place(folder: Path) -> None:
    """For every line: load, take, save and create leave every byte as it is."""
    log = log_of(folder)
    whole = log.read_bytes()
    token = loaded(folder).token
    ends = [place for place, byte in enumerate(whole) if byte == ord("\n")][:-1]
    for number, end in enumerate(ends, 1):
        log.write_bytes(spoilt(whole, end - 20))
        before = content(folder)
        store = FileStore(folder)
        with pytest.raises(UnreadableCheckpoint, match=f"1.log, line {number}: "):
            store.load("r")
        with pytest.raises(UnreadableCheckpoint, match=f"1.log, line {number}: "):
            store.take("r", "b", LONG, over="a")
        with pytest.raises(UnreadableCheckpoint):
            store.save("r", token, {})
        assert store.create("r", {}) is False
        assert content(folder) == before


def test_a_line_that_is_missing_is_refused(folder: Path) -> None:
    log = log_of(folder)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    with pytest.raises(UnreadableCheckpoint, match=r"line 4: an event .* is missing"):
        FileStore(folder).load("r")


def test_damage_that_a_holder_meets_is_refused_each_time(folder: Path) -> None:
    """An open handle that once read over it must not go on behind it."""
    store = FileStore(folder)
    token = taken(store, "b", over="a").token
    with log_of(folder).open("ab") as file:
        file.write(b"foreign\n" + b'{"foreign": 1}\n' + snapshot_line(folder))
    for _ in range(2):
        with pytest.raises(UnreadableCheckpoint):
            store.save("r", token, {"n": 4})


def snapshot_line(folder: Path) -> bytes:
    return log_of(folder).read_bytes().partition(b"\n")[0] + b"\n"


def test_a_run_whose_log_is_gone_is_not_a_new_one(folder: Path) -> None:
    log_of(folder).unlink()
    store = FileStore(folder)
    with pytest.raises(UnreadableCheckpoint, match="its log is gone"):
        store.load("r")
    assert [due.run_id for due in store.due()] == ["r"]


def test_what_is_no_run_hides_none(folder: Path) -> None:
    """A file, a folder without a log, and a log that is a folder."""
    (folder / "file.run").write_text("no folder")
    (folder / "empty.run").mkdir()
    (folder / "folder.run" / "1.log").mkdir(parents=True)
    (folder / "notes.txt").write_text("nothing of ours")
    store = FileStore(folder)
    names = sorted(due.run_id for due in store.due())
    assert names == ["empty", "file", "folder", "r"]
    for name in ("file", "empty", "folder"):
        with pytest.raises(UnreadableCheckpoint):
            store.take(name, "b", LONG)


def test_a_stale_holder_that_sees_it_writes_nothing(folder: Path) -> None:
    stale, newer = FileStore(folder), FileStore(folder)
    token = taken(stale, "b", over="a").token
    taken(newer, "c", over="b")
    before = content(folder)
    with pytest.raises(Fenced):
        stale.save("r", token, {"n": "stale"})
    stale.release("r", token)
    assert content(folder) == before


@pytest.fixture
def before_next_write(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Do something right before the next write of anybody, after all checks."""

    def before(deed: Callable[[], object]) -> None:
        def write(file: int, data: bytes) -> None:
            monkeypatch.undo()
            deed()
            event_log.write(file, data)

        monkeypatch.setattr(event_log, "write", write)

    return before


def test_a_holder_overtaken_in_its_save_changes_nothing(
    folder: Path, before_next_write: Callable[[Any], None]
) -> None:
    """Its line is in the log, and nobody sees it, now or later."""
    stale, newer = FileStore(folder), FileStore(folder)
    token = taken(stale, "b", over="a").token
    before_next_write(lambda: taken(newer, "c", over="b"))
    with pytest.raises(Fenced):
        stale.save("r", token, {"n": "stale"})
    assert b"stale" in log_of(folder).read_bytes()
    assert loaded(folder).document == document(3)
    newer.save("r", loaded(folder).token, document(4))
    assert loaded(folder).document == document(4)


def test_a_holder_overtaken_right_after_its_save_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its save was taken over; but it must not act on it, as the taker does."""
    holder, taker = FileStore(folder), FileStore(folder)
    token, real = taken(holder, "b", over="a").token, os.fsync

    def fsync(file: int) -> None:
        monkeypatch.undo()
        assert taken(taker, "c", over="b").document == document(4)
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(Fenced):
        holder.save("r", token, document(4))


def test_a_log_is_not_moved_under_who_took_the_run_meanwhile(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He is in his save: he would be fenced off, and the run his until it expires."""
    late, newer = FileStore(folder, snapshot_every=1), FileStore(folder)
    token, sync, write = taken(late, "b", over="a").token, os.fsync, event_log.write
    is_saved, goes_on = Event(), Event()

    def late_stops_here(file: int) -> None:
        sync(file)
        monkeypatch.setattr(os, "fsync", sync)
        is_saved.set()
        assert goes_on.wait(60)

    def newer_stops_here(file: int, data: bytes) -> None:
        monkeypatch.setattr(event_log, "write", write)
        goes_on.set()
        mover.join(60)
        write(file, data)

    monkeypatch.setattr(os, "fsync", late_stops_here)
    lets_go = partial(late.save, "r", token, document(4), keep=False)
    mover = Thread(target=lets_go)
    mover.start()
    assert is_saved.wait(60)
    held = taken(newer, "c")
    assert held.document == document(4)
    monkeypatch.setattr(event_log, "write", newer_stops_here)
    newer.save("r", held.token, document(5))
    assert not mover.is_alive()
    assert loaded(folder).document == document(5)


def test_a_save_that_comes_before_the_takeover_is_taken_over(
    folder: Path, before_next_write: Callable[[Any], None]
) -> None:
    """The taker has read the log before it; it must read it again."""
    holder, taker = FileStore(folder), FileStore(folder)
    token = taken(holder, "b", over="a").token
    before_next_write(lambda: holder.save("r", token, document(4)))
    assert taken(taker, "c", over="b").document == document(4)


def test_a_lease_renewed_before_the_takeover_stands(
    folder: Path, before_next_write: Callable[[Any], None]
) -> None:
    """An expired lease whose holder was faster: the taker gets nothing."""
    holder, taker = FileStore(folder), FileStore(folder)
    assert holder.take("r", "b", 0.0, over="a") is not None
    again = loaded(folder).token
    before_next_write(lambda: taken(holder, "c"))
    assert taker.take("r", "d", LONG) is None
    assert loaded(folder).owner == "c"
    with pytest.raises(Fenced):
        holder.save("r", again, {})


def test_a_line_spoilt_by_a_death_right_before_it_is_written_again(
    folder: Path, before_next_write: Callable[[Any], None]
) -> None:
    """Another writer dies in its line between our look and our write."""
    store = FileStore(folder)
    token = taken(store, "b", over="a").token

    def die_in_a_line() -> None:
        with log_of(folder).open("ab") as file:
            file.write(b'{"number":7,"ev')

    before_next_write(die_in_a_line)
    store.save("r", token, document(4))
    assert loaded(folder).document == document(4)


def test_claimers_go_in_turn_and_losers_leave_no_lines(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the number of writes to a log would hang on who was how fast."""
    monkeypatch.setattr(event_log, "TURN_LOOKS", 1_000_000)
    FileStore(folder).release("r", loaded(folder).token)
    before = log_of(folder).read_bytes().count(b"\n")
    start, won = Barrier(4), Counter[bool]()

    def claim(owner: str) -> None:
        store = FileStore(folder)
        start.wait()
        won[store.take("r", owner, LONG) is not None] += 1

    threads = [Thread(target=claim, args=(f"w{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == {True: 1, False: 3}
    assert log_of(folder).read_bytes().count(b"\n") == before + 1


def test_a_claimer_that_was_stopped_in_its_turn_is_passed_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "TURN_LOOKS", 2)
    with log_of(folder).open() as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        goes_on(folder, document(3))


class Died(BaseException):
    """In the place of a SIGKILL; nothing in the store may catch it."""


CALLS = ("open", "write", "fsync", "mkdir", "link", "rename", "unlink", "listdir")


def dying(monkeypatch: pytest.MonkeyPatch, at: int) -> list[str]:
    """Die in the place of call number ``at``; returns the calls that were made."""
    made: list[str] = []

    def dies(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            made.append(name)
            if len(made) == at:
                raise Died(name)
            return real(*arguments, **options)

        return call

    for name in CALLS:
        monkeypatch.setattr(os, name, dies(name, getattr(os, name)))
    return made


def _create(folder: Path) -> None:
    FileStore(folder).create("r", document(9))


def _take(folder: Path) -> None:
    FileStore(folder).take("r", "b", LONG, over="a")


def _save(folder: Path) -> None:
    FileStore(folder).save("r", loaded(folder).token, document(9))


def _move(folder: Path) -> None:
    store = FileStore(folder, snapshot_every=1)
    store.save("r", loaded(folder).token, document(9))


def _release(folder: Path) -> None:
    FileStore(folder).release("r", loaded(folder).token)


@pytest.mark.parametrize("deed", [_create, _take, _save, _move, _release])
def test_whoever_dies_at_any_system_call_leaves_all_or_nothing(
    folder: Path, deed: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next one goes on, whichever it was; nothing stays behind for long."""
    if deed is _create:
        shutil.rmtree(folder / "r.run")
    kept = folder.with_name("kept")
    folder.rename(kept)
    old = None if deed is _create else document(3)
    new = document(3) if deed in (_take, _release) else document(9)
    for at in range(1, 1000):
        shutil.copytree(kept, folder)
        with monkeypatch.context() as patch:
            made = dying(patch, at)
            try:
                deed(folder)
            except Died:
                pass
            else:
                break
        held = FileStore(folder).load("r")
        assert (held and held.document) in (old, new), f"died in {made}"
        if held is None:
            assert FileStore(folder).create("r", document(9)) is True
        goes_on(folder, loaded(folder).document)
        shutil.rmtree(folder)
    assert at == len(made) + 1 > 3


def test_a_move_whose_mover_died_is_done_by_the_next(folder: Path) -> None:
    log = EventLog(log_of(folder))
    assert log.append({"moved": True})
    log.close()
    (folder / "r.run" / "2.log.123").write_text("half a snapsh")
    assert loaded(folder).document == document(3)
    goes_on(folder, document(3))
    assert log_of(folder).name == "2.log"


def test_a_late_mover_replaces_nothing(folder: Path) -> None:
    """It was stopped after it read a moved log, and the run has gone on since."""
    late = FileStore(folder)
    taken(late, "late", over="a")
    store = FileStore(folder, snapshot_every=1)
    held = taken(store, "b", over="late")
    for number in range(4, 20):
        store.save("r", held.token, document(number))
    assert int(log_of(folder).stem) > 3
    with pytest.raises(Fenced):
        late.save("r", held.token - 1, {})
    assert loaded(folder).document == document(19)


def test_a_moved_log_takes_no_events(folder: Path) -> None:
    log = EventLog(log_of(folder))
    stale = EventLog(log_of(folder))
    assert log.append({"moved": True})
    assert not stale.append({"takes": 7})
    assert not log.append({"takes": 7})
    assert loaded(folder).takes == 0


def test_logs_stay_few_and_short(folder: Path) -> None:
    """One that goes on, one before it; not much more than two documents to read."""
    store = FileStore(folder)
    held = taken(store, "b", over="a")
    for number in range(4, 400):
        store.save("r", held.token, document(number))
        log = log_of(folder)
        whole = len(json.dumps(document(number)))
        assert log.stat().st_size < 3 * whole + 50 * 250
    left = sorted(path.name for path in (folder / "r.run").iterdir())
    assert int(log.stem) > 2
    assert left == [f"{int(log.stem) - 1}.log", log.name]


def test_a_run_that_has_ended_is_not_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polls are many, and so are runs that ended."""
    store = FileStore(folder)
    held = taken(store, "b", over="a")
    store.save("r", held.token, document(4), wake_at=None, keep=False)
    opened: list[Path] = []

    def spy(path: Path) -> EventLog:
        opened.append(path)
        return EventLog(path)

    monkeypatch.setattr(files_due, "EventLog", spy)
    for _ in range(5):
        assert store.due() == []
    assert opened == [log_of(folder)]


def test_a_full_disk_is_told_in_words(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a line is written then; the next one is not glued to it."""
    store = FileStore(folder)
    token = taken(store, "b", over="a").token
    real, calls = os.write, iter((8, None))

    def write(file: int, data: bytes) -> int:
        if (part := next(calls)) is None:
            raise OSError(28, "No space left on device")
        return real(file, data[:part])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(StoreUnavailable, match="No space left"):
            store.save("r", token, document(4))
    store.save("r", token, document(5))
    assert loaded(folder).document == document(5)


def spoilt(whole: bytes, place: int) -> bytes:
    """With another byte there, that is no line's end."""
    return whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]


MANIFEST = {
    "name": "filing",
    "launch": "fork",
    "fork": {
        "preload": ["urllib.request", "reference_agent.stores.files"],
        "call": "filing_agent:main",
    },
    "start": ["{python}", "filing_agent.py", "{run}", "{goal}"],
    "store": "files",
    "contract": {"effects": "exactly-once", "max_lives": 6},
}
SCENARIO = {
    "name": "filing",
    "agent": "agent.yaml",
    "task": {"goal": "Pay the bill and send a note"},
    "llm": {
        "script": [
            {"call": {"pay": {"order": "o-1", "cents": 100}}},
            {"call": {"note": {"id": "n-1"}}},
            {"call": {"note": {"id": "n-2"}}},
            {"say": "Paid."},
        ]
    },
    "tools": {"pay": "keyed", "note": "keyed"},
}


def test_losses_of_power_and_torn_writes_are_survived(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """On a disk that keeps what was synced, and nothing more, under several faults."""
    shutil.copy(Path(__file__).with_name("filing_agent.py"), tmp_path)
    shutil.copy(ROOT / "scenarios" / "kept" / "kept.py", tmp_path)
    (tmp_path / "agent.yaml").write_text(json.dumps(MANIFEST))
    (tmp_path / "filing.yaml").write_text(json.dumps(SCENARIO))
    trials = "600" if request.config.getoption("--full", default=False) else "60"
    words = ["run", "filing.yaml", "--strategy", "sample", "--trials", trials]
    for fault in ("kill", "powerloss", "tear", "pause"):
        words += ["--fault", fault]
    command = [sys.executable, "-m", "chaoskit", *words, "--out", "out"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["faults"]["powerloss"] > 5


def test_what_a_save_writes_does_not_grow(tmp_path: Path) -> None:
    """The benchmark at a tenth of its size, with both logs."""
    benchmark = ROOT / "tests" / "benchmarks" / "log_growth.py"
    command = [sys.executable, str(benchmark), "100", "files", "redis-log"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_run_that_is_made_never_touches_one_whose_name_begins_like_it(
    tmp_path: Path,
) -> None:
    """What an earlier maker left behind goes, and nothing that is a run."""
    with closing(FileStore(tmp_path)) as store:
        for run in ("a.run.7", "a.run", "a.run.7.run"):
            store.create(run, {"of": run})
        left = tmp_path / "!a.run.12345"
        left.mkdir()
        assert store.create("a", {"of": "a"})
        assert not left.exists()
        for run in ("a.run.7", "a.run", "a.run.7.run", "a"):
            held = store.load(run)
            assert held is not None
            assert held.document == {"of": run}


def test_a_run_that_cannot_be_opened_hides_no_other(tmp_path: Path) -> None:
    with closing(FileStore(tmp_path)) as store:
        store.create("r1", {})
        (tmp_path / "loop.run").symlink_to("loop.run")
        assert {due.run_id for due in store.due()} == {"r1", "loop"}
