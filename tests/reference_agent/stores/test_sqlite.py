"""What only SQLite has: one file, many processes, and a log that a kill may leave."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reference_agent.stores.base import Due, StoreUnavailable, UnreadableCheckpoint
from reference_agent.stores.sqlite import SqliteStore

ROOT = Path(__file__).parents[3]
SECONDS_MAX = 60
LONG = 3600.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as store:
        yield store


def python(code: str, *words: object) -> subprocess.Popen[str]:
    """Another process with a `store`."""
    head = (
        "import sys\nfrom pathlib import Path\n"
        "from reference_agent.stores.sqlite import SqliteStore\n"
        "store = SqliteStore(Path(sys.argv[1]))\n"
    )
    command = (sys.executable, "-c", head + code, *map(str, words))
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


def taken(store: SqliteStore, run: str = "r1") -> int:
    """A new run, taken; its token."""
    assert store.create(run, {"n": 0})
    held = store.take(run, "a", LONG)
    assert held is not None
    return held.token


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Processes


COUNTS = """
name, done = sys.argv[2], 0
store.create("r1", {"n": 0})
while done < 100:
    held = store.take("r1", name, 3600)
    if held is not None:
        store.save("r1", held.token, {"n": held.document["n"] + 1}, keep=False)
        done += 1
"""


def test_processes_at_once_lose_no_change_of_another(
    store: SqliteStore, path: Path
) -> None:
    """They begin at once, too, on a file that is not there."""
    each = [python(COUNTS, path, name) for name in "abc"]
    for process in each:
        process.communicate(timeout=SECONDS_MAX)
    assert [process.returncode for process in each] == [0, 0, 0]
    held = store.load("r1")
    assert held is not None
    assert held.document == {"n": 300}


OPENS = """
print("ready", flush=True)
sys.stdin.readline()
print(store.create(sys.argv[2], {}))
"""


def test_a_file_is_made_by_one_of_those_who_open_it_first(path: Path) -> None:
    each = [python(OPENS, path, f"r{number % 2}") for number in range(4)]
    for process in each:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
    for process in each:
        process.stdin.write("\n")
        process.stdin.flush()
    printed = [process.communicate(timeout=SECONDS_MAX)[0] for process in each]
    assert sorted(printed) == ["False\n", "False\n", "True\n", "True\n"]


SAVES = """
store.create("r1", {"n": 0})
token = store.take("r1", "a", 3600, over="a").token
for n in range(1, 1_000_000):
    store.save("r1", token, {"n": n, "text": "x" * 3000})
    print(n, flush=True)
"""


def test_what_a_killed_process_had_saved_is_there(path: Path) -> None:
    """It is killed again and again in the middle of a save."""
    for _ in range(5):
        with python(SAVES, path) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if int(line) >= 50:
                    break
            process.kill()
            told = [line, *process.stdout]
        with closing(SqliteStore(path)) as store:
            held = store.load("r1")
        whole = [line for line in told if line.endswith("\n")]
        assert held is not None
        assert held.document["n"] >= int(whole[-1])
        assert held.document["text"] == "x" * 3000
        assert held.owner == "a"


# Files


@pytest.mark.parametrize("found", [b"no database", b"x" * 20_000, b"SQLite format 3"])
def test_a_file_that_is_no_database_is_kept_as_it_is(
    store: SqliteStore, path: Path, found: bytes
) -> None:
    path.write_bytes(found)
    for _ in range(2):
        with pytest.raises(UnreadableCheckpoint, match="not a database"):
            store.load("r1")
        with pytest.raises(UnreadableCheckpoint, match="not a database"):
            store.create("r1", {})
    assert content(path.parent) == {path.name: found}


def test_a_damaged_database_is_unreadable_and_kept(
    store: SqliteStore, path: Path
) -> None:
    """Its second page is the one with the runs."""
    taken(store)
    store.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * 4096 + whole[8192:])
    before = content(path.parent)
    for _ in range(2):
        with pytest.raises(UnreadableCheckpoint, match="malformed"):
            store.load("r1")
        with pytest.raises(UnreadableCheckpoint, match="malformed"):
            store.take("r1", "b", LONG, over="a")
        store.close()
    assert content(path.parent) == before


def test_a_table_of_somebody_else_is_left_alone(store: SqliteStore, path: Path) -> None:
    import sqlite3

    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE agent_runs (run_id TEXT PRIMARY KEY, price INT)")
        other.execute("INSERT INTO agent_runs VALUES ('r1', 7)")
        other.commit()
        for _ in range(2):
            with pytest.raises(UnreadableCheckpoint, match="no such column"):
                store.load("r1")
        assert other.execute("SELECT * FROM agent_runs").fetchall() == [("r1", 7)]


def test_a_folder_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="none"):
        SqliteStore(tmp_path / "none" / "agent.db").load("r1")


def test_a_writer_that_never_ends_makes_the_store_unavailable(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads go on meanwhile; and once it is gone, so do changes."""
    monkeypatch.setattr("reference_agent.stores.sqlite.BUSY_SECONDS_MAX", 0.0)
    token = taken(store)
    with closing(SqliteStore(path)) as other:
        with other._change():
            with pytest.raises(StoreUnavailable, match="locked"):
                store.save("r1", token, {"n": 1})
            held = store.load("r1")
            assert held is not None
            assert held.document == {"n": 0}
        store.save("r1", token, {"n": 1})


def test_the_log_stays_small(store: SqliteStore, path: Path) -> None:
    """However much is saved, and whoever else has the file open."""
    with closing(SqliteStore(path)) as other:
        token = taken(store)
        sizes = []
        for number in range(200):
            store.save("r1", token, {"n": number, "text": "x" * 100_000})
            assert other.load("r1") is not None
            sizes.append(path.with_name("agent.db-wal").stat().st_size)
    assert max(sizes) < 6_000_000
    assert path.stat().st_size < 2_000_000
    store.close()
    assert content(path.parent).keys() == {"agent.db"}


def test_a_poll_reads_no_run_that_is_over(store: SqliteStore) -> None:
    """It goes by the index, which has only those that are due some time."""
    from reference_agent.stores.sqlite import _DUE

    store.create("r1", {})
    with store._connected() as db:
        plan = db.execute(f"EXPLAIN QUERY PLAN {_DUE}", {"now": 1.0}).fetchall()
    shown = " ".join(str(row[3]) for row in plan)
    assert "agent_runs_due" in shown
    assert "SCAN" not in shown


def test_a_time_that_came_between_a_look_and_a_wait_counts(store: SqliteStore) -> None:
    """Otherwise it would have to wait for an hour."""
    token = taken(store)
    at = store.now() + 0.05
    store.save("r1", token, {}, wake_at=at)
    assert store.due() == []
    while store.now() < at:
        pass
    store.wait(LONG)
    assert store.due() == [Due("r1", "a")]


# A loss of power


AGENT = f"""
import os, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT / "scenarios" / "kept")!r})
import kept
from reference_agent.stores.sqlite import SqliteStore

class Kept:
    def __init__(self, run):
        self.run, folder = run, os.environ["CHAOSKIT_STATE_DIR"]
        self.store = SqliteStore(Path(folder, "agent.db"))

    def load(self):
        held = self.store.load(self.run)
        if TAKES or held is None or not held.token:
            self.store.create(self.run, {{}})
            held = self.store.take(self.run, "a", 3600, over="a")
        self.token = held.token
        return held.document or None

    def save(self, state):
        self.store.save(self.run, self.token, state)

def main():
    global TAKES
    TAKES = sys.argv[1] == "takes"
    kept.store_of = lambda name, run: Kept(run)
    return kept.main()
"""
MANIFEST = """
name: sqlite
launch: fork
fork: {{preload: [urllib.request, reference_agent.stores.sqlite], call: "agent:main"}}
start: ["{{python}}", agent.py, {0}, "{{run}}", "{{goal}}"]
store: sqlite
contract: {{effects: exactly-once, max_lives: 5}}
env: {{PYTHONPATH: {1}}}
"""


SEARCHES = {
    "loads": ["--strategy", "closure"],
    # The store counts the lives that came to nothing, so there is no end of states.
    "takes": ["--strategy", "sample", "--trials", "60"],
}


@pytest.mark.parametrize("how", SEARCHES)
def test_what_is_handed_out_survives_a_loss_of_power(tmp_path: Path, how: str) -> None:
    """Also what a life that was killed had written and not yet synced.

    A life takes its lease anew, whose own commit makes the log durable, or it loads and
    goes on under the token that it finds.
    """
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "agent.yaml").write_text(MANIFEST.format(how, json.dumps(str(ROOT))))
    scenario = ROOT / "scenarios" / "kept.yaml"
    command = [sys.executable, "-m", "chaoskit", "run", scenario, "--out", "out"]
    command += ["--agent", tmp_path / "agent.yaml", *SEARCHES[how]]
    command += ["--fault", "kill", "--fault", "powerloss"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["kills"] + (report["states"] or 0) >= 20
    assert report["doubts"] == []
