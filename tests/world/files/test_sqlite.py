"""SQLite on the folder: right in every journal mode, killed anywhere, without power."""

import itertools

import pytest

MODES = ["WAL", "DELETE", "TRUNCATE", "PERSIST"]
OPEN = """
import sqlite3
db = sqlite3.connect("agent.db", isolation_level=None, timeout=30)
db.execute("PRAGMA journal_mode = {mode}").fetchall()
db.execute("PRAGMA synchronous = {sync}")
db.execute("PRAGMA cache_size = 10")
db.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, who, pad)")
"""
# Each transaction is told on standard output once it is committed.
WORK = (
    OPEN
    + """
for number in range(4):
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO t (who, pad) VALUES (?, ?)", (number, "x" * 3000))
    db.execute("UPDATE t SET pad = ?", (str(number) * 2000,))
    db.execute("COMMIT")
    os.write(1, b"+")
"""
)
LOOK = """
import sqlite3
db = sqlite3.connect("agent.db", timeout=30)
try:
    count = db.execute("SELECT count(*), count(DISTINCT pad) FROM t").fetchone()
except sqlite3.OperationalError:
    count = (0, 0)
print(*count, *db.execute("PRAGMA integrity_check").fetchone())
"""
CROWD = (
    OPEN
    + """
import threading
def reader(stop):
    db = sqlite3.connect("agent.db", timeout=30)
    last = 0
    while not stop(0.01):
        rows = db.execute("SELECT who, count(*) FROM t GROUP BY who").fetchall()
        assert sum(count for _, count in rows) >= last
        last = sum(count for _, count in rows)
def writer(who):
    db = sqlite3.connect("agent.db", isolation_level=None, timeout=30)
    for number in range(8):
        db.execute("BEGIN IMMEDIATE")
        seen = db.execute("SELECT count(*) FROM t WHERE who = ?", (who,)).fetchone()
        assert seen == (number,)
        db.execute("INSERT INTO t (who, pad) VALUES (?, ?)", (who, "x" * 2000))
        db.execute("COMMIT")
children = []
for who in range(3):
    if not (child := os.fork()):
        writer(who)
        os._exit(0)
    children.append(child)
done = threading.Event()
thread = threading.Thread(target=reader, args=(done.wait,))
thread.start()
codes = [os.waitpid(child, 0)[1] for child in children]
done.set()
thread.join()
print(codes)
"""
)


def durable(mode):
    """The least that SQLite's documents ask for, for a commit to outlive the power.

    In DELETE mode that is EXTRA: a journal is removed without a sync of the folder.
    """
    return "EXTRA" if mode == "DELETE" else "FULL"


@pytest.mark.parametrize("mode", MODES)
async def test_processes_that_read_and_write_at_once(on_disk, mode):
    async with on_disk() as bench:
        code = CROWD.format(mode=mode, sync="FULL")
        assert await bench.run(code) == "[0, 0, 0]\n"
        assert await bench.run(LOOK) == "24 1 ok\n"


async def _addresses(bench, mode, request, sync):
    """Edges to strike at: all of them with ``--full``, else about a dozen."""
    await bench.trial()
    assert await bench.run(WORK.format(mode=mode, sync=sync)) == "++++"
    edges = [event.address for event in bench.gate.record.events]
    step = 1 if request.config.getoption("full") else len(edges) // 12
    return edges[::step]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", ["kill", "powerloss", "powerloss(some)"])
async def test_what_was_committed_is_there_and_whole_wherever_it_ends(
    on_disk, mode, fault, request
):
    sync = durable(mode)
    async with on_disk() as bench:
        for edge in await _addresses(bench, mode, request, sync):
            await bench.trial(f"{fault}@{edge}")
            ended = await bench.live(WORK.format(mode=mode, sync=sync))
            assert (ended.signal, len(bench.fired())) == (9, 1)
            committed = len(bench.out.read_text())
            count, kinds, verdict = (await bench.run(LOOK)).split()
            assert verdict == "ok", edge
            assert int(count) in (committed, committed + 1), edge
            assert int(kinds) == min(int(count), 1), "a transaction is whole"


@pytest.mark.parametrize("mode", MODES)
async def test_a_torn_write_is_recovered_from(on_disk, mode, request):
    async with on_disk() as bench:
        edges = await _addresses(bench, mode, request, "FULL")
        writes = [e for e in edges if ".write[" in e and e.endswith("before")]
        for edge, part in itertools.product(writes[:8], (1, 11)):
            await bench.trial(f"tear@{edge.replace('before', f'part:{part}')}")
            ended = await bench.live(WORK.format(mode=mode, sync="FULL"))
            committed = len(bench.out.read_text())
            if len(bench.fired()) == 0:
                assert ended.code == 0, "a write of fewer bytes"
                continue
            count, _, verdict = (await bench.run(LOOK)).split()
            assert (int(count), verdict) == (committed, "ok")


@pytest.mark.parametrize(
    ("mode", "sync", "left"), [("DELETE", "FULL", 3), ("WAL", "NORMAL", 0)]
)
async def test_a_commit_that_was_not_synced_is_forgotten_without_power(
    on_disk, mode, sync, left
):
    """As SQLite's documents say; the database is whole all the same."""
    code = WORK.format(mode=mode, sync=sync) + "os.mkdir('after')"
    async with on_disk() as bench:
        await bench.trial("powerloss@0:files.mkdir[after]#1:before")
        await bench.live(code)
        assert bench.out.read_text() == "++++"
        assert (await bench.run(LOOK)).split()[::2] == [str(left), "ok"]


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
async def test_the_same_transactions_cross_in_the_same_order(on_disk, mode, request):
    times = 100 if request.config.getoption("full") else 5
    runs = set()
    async with on_disk() as bench:
        for _ in range(times):
            await bench.trial()
            await bench.run(WORK.format(mode=mode, sync="FULL"))
            runs.add(tuple(bench.crossed()))
    (only,) = runs
    files = {address.partition("[")[2].partition("]")[0] for address in only}
    log = {"WAL": "agent.db-wal", "DELETE": "agent.db-journal"}[mode]
    assert files - {"agent.db-journal"} == {"agent.db", log, "."} - {"agent.db-journal"}
