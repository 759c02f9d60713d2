"""Snapshots, views, and what a view says is not synced."""

import asyncio
import json
import pickle

PLAIN = """
folder = os.open(".", os.O_RDONLY)
with open("synced", "xb") as file:
    file.write(b"safe")
    file.flush()
    os.fsync(file.fileno())
os.mkdir("d")
os.fsync(folder)
with open("d/unsynced", "xb") as file:
    file.write(b"\\xff\\x00")
with open("synced", "ab") as file:
    file.write(b" and not")
os.symlink("synced", "link")
with open("long", "xb") as file:
    file.write(bytes(100_000))
"""
SQLITE = """
import sqlite3
db = sqlite3.connect("agent.db", isolation_level=None)
db.execute("PRAGMA journal_mode = {mode}")
db.execute("PRAGMA synchronous = {sync}")
db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, value, data BLOB)")
db.execute("INSERT INTO t (value, data) VALUES ('one', x'ff00')")
db.execute("BEGIN")
db.execute("INSERT INTO t (value) VALUES ('never committed')")
os._exit(0)
"""


async def test_a_view_tells_the_synced_from_the_unsynced(on_disk):
    async with on_disk() as bench:
        await bench.run(PLAIN)
        shown = await bench.files.view()
        assert shown == {
            "now": {
                "d": {"folder": True},
                "d/unsynced": {"base64": "/wA="},
                "link": {"link": "synced"},
                "long": {"sha256": shown["now"]["long"]["sha256"], "bytes": 100_000},
                "synced": {"text": "safe and not"},
            },
            "unsynced": {
                "d/unsynced": None,
                "link": None,
                "long": None,
                "synced": {"text": "safe"},
            },
        }
        assert json.loads(json.dumps(shown)) == shown


async def test_a_snapshot_brings_back_all_of_it_the_unsynced_part_too(on_disk):
    async with on_disk() as bench:
        await bench.run(PLAIN)
        shown = await bench.files.view()
        snapshot = pickle.loads(pickle.dumps(await bench.files.snapshot()))
        await bench.trial()
        assert await bench.files.view() == {"now": {}}
        await bench.files.restore(snapshot)
        assert await bench.files.view() == shown
        said = await bench.run("print(open('link').read(), os.listdir('d'))")
        assert said == "safe and not ['unsynced']\n"
        await bench.files.lose_power()
        assert await bench.content() == {"d": True, "synced": "safe"}
        await bench.files.restore(snapshot)
        assert await bench.files.view() == shown, "a snapshot is not worn by its use"


async def test_a_snapshot_from_within_a_held_message_is_of_whole_messages(
    on_disk, hold
):
    gate = hold("0:files.write[a]#2:before")
    async with on_disk() as bench:
        await bench.trial(watch=gate)
        await bench.begin("for n in b'xy': open('a', 'ab').write(bytes([n]))")
        await gate.held.wait()
        async with asyncio.timeout(5):
            assert await bench.content() == {"a": "x"}
            snapshot = await bench.files.snapshot()
        gate.let_go.set()
        await bench.end()
        assert await bench.content() == {"a": "xy"}
        await bench.trial()
        await bench.files.restore(snapshot)
        assert await bench.run("print(open('a').read())") == "x\n"


async def test_a_database_is_seen_as_its_next_reader_will_see_it(on_disk):
    """Its bytes hold random numbers; its rows are the same in every run."""
    views = []
    async with on_disk() as bench:
        for mode, sync in (("WAL", "FULL"), ("DELETE", "EXTRA")) * 2:
            await bench.trial()
            await bench.run(SQLITE.format(mode=mode, sync=sync))
            views.append(await bench.files.view())
    assert views[:2] == views[2:]
    for view, mode in zip(views, ("wal", "delete"), strict=False):
        assert list(view) == ["now"], "all of it is synced"
        assert list(view["now"]) == ["agent.db"], "its log is part of it"
        shown = view["now"]["agent.db"]["sqlite"]
        assert shown["t"]["rows"] == [[1, "one", {"base64": "/wA="}]]
        assert shown["PRAGMA journal_mode"] == mode


async def test_a_transaction_that_is_not_synced_shows_as_unsynced(on_disk):
    async with on_disk() as bench:
        await bench.run(SQLITE.format(mode="WAL", sync="NORMAL"))
        shown = await bench.files.view()
        assert len(shown["now"]["agent.db"]["sqlite"]["t"]["rows"]) == 1
        assert "t" not in shown["unsynced"]["agent.db"]["sqlite"]


async def test_a_damaged_database_is_shown_and_breaks_nothing(on_disk):
    async with on_disk() as bench:
        await bench.run("open('x.db', 'xb').write(b'SQLite format 3\\0' + b'?' * 200)")
        (shown,) = (await bench.files.view())["now"].values()
        assert shown["damaged"] == "file is not a database"


async def test_where_no_power_is_lost_synced_and_unsynced_are_one_state(
    on_disk, make_scenario
):
    async with on_disk() as bench:
        await bench.files.reset(bench.gate, make_scenario(faults=["kill"]))
        await bench.run(PLAIN)
        assert list(await bench.files.view()) == ["now"]
