"""What only PostgreSQL has: row locks, notifications, and a server that may restart."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from chaoskit.world.postgres.own import OwnServer
from reference_agent.stores.base import (
    Due,
    Fenced,
    StoreUnavailable,
    UnreadableCheckpoint,
)
from reference_agent.stores.postgres import _SCHEMA as SCHEMA
from reference_agent.stores.postgres import _TAKE as CLAIM
from reference_agent.stores.postgres import PostgresStore

SECONDS_MAX = 60
LONG = 3600.0
Make = Callable[[], PostgresStore]


@pytest.fixture
def make_store(postgres_url: str) -> Iterator[Make]:
    """Stores on one database, each with a connection of its own."""
    made: list[PostgresStore] = []

    def make() -> PostgresStore:
        made.append(PostgresStore(postgres_url))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def store(make_store: Make) -> PostgresStore:
    return make_store()


@pytest.fixture
def other(postgres_url: str) -> Iterator[psycopg.Connection]:
    """Another's connection, in whose hands a transaction stays open."""
    with closing(psycopg.connect(postgres_url)) as connection:
        yield connection


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def taken(store: PostgresStore, run: str = "r1", owner: str = "a") -> int:
    """A new run, taken; its token."""
    assert store.create(run, {"n": 0})
    held = store.take(run, owner, LONG)
    assert held is not None
    return held.token


def is_blocked(other: psycopg.Connection) -> bool:
    """Whether somebody waits for a lock of this connection."""
    asked = """SELECT count(*) > 0 FROM pg_locks
        WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"""
    return other.execute(asked).fetchone() == (True,)


def python(code: str, *words: str) -> subprocess.Popen[str]:
    """Another process with a `store`."""
    head = "import sys\nfrom reference_agent.stores.postgres import PostgresStore\n"
    code = f"{head}store = PostgresStore(sys.argv[1])\n{code}"
    command = (sys.executable, "-c", code, *words)
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


def awaited(process: subprocess.Popen[str]) -> str:
    """What it printed, once it has ended well."""
    try:
        printed, _ = process.communicate(timeout=SECONDS_MAX)
    finally:
        process.kill()
    assert process.returncode == 0
    return printed


# Notifications


def _create(store: PostgresStore, token: int) -> None:
    store.create("r2", {})


def _hand_back(store: PostgresStore, token: int) -> None:
    store.save("r1", token, {}, keep=False)


def _hand_back_for_later(store: PostgresStore, token: int) -> None:
    store.save("r1", token, {}, wake_at=store.now() + LONG, keep=False)


def _release(store: PostgresStore, token: int) -> None:
    store.release("r1", token)


IS_WAITED_FOR = """SELECT count(*) > 0 FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'idle' AND query ~ 'min.wake_at'"""
"""Somebody has asked for the next time to wake, and now only listens."""


@pytest.mark.parametrize("do", [_create, _hand_back, _hand_back_for_later, _release])
def test_who_waits_in_another_process_is_told_at_once(
    store: PostgresStore,
    other: psycopg.Connection,
    postgres_url: str,
    do: Callable[[PostgresStore, int], None],
) -> None:
    """Who was not told would wait for an hour."""
    token = taken(store)
    code = "store.due(); print('waits', flush=True); store.wait(3600); print('woke')"
    with python(code, postgres_url) as waits:
        assert waits.stdout is not None
        assert waits.stdout.readline() == "waits\n"
        other.autocommit = True
        while other.execute(IS_WAITED_FOR).fetchone() != (True,):
            pass
        do(store, token)
        assert awaited(waits) == "woke\n"


def test_what_was_told_before_the_wait_counts(make_store: Make) -> None:
    """Between `due` and `wait`, say: otherwise it would have to wait for an hour."""
    waits = make_store()
    assert waits.due() == []
    make_store().create("r1", {})
    waits.wait(LONG)
    assert waits.due() == [Due("r1", None)]


def test_the_next_time_to_wake_ends_a_wait(store: PostgresStore) -> None:
    """Also one that came between `due` and `wait`."""
    token = taken(store)
    store.wait(LONG)  # told of its creation
    at = store.now() + 0.2
    store.save("r1", token, {}, wake_at=at)
    assert store.due() == []
    store.wait(LONG)
    assert store.due() == [Due("r1", "a")]
    store.save("r1", token, {}, wake_at=store.now() + 0.05)
    assert store.due() == []
    at = store.now() + 0.05
    while store.now() < at:
        pass
    store.wait(LONG)
    assert store.due() == [Due("r1", "a")]


def test_a_save_that_keeps_the_lease_wakes_nobody(make_store: Make) -> None:
    """Nor one of a run that is over: polls would be as many as steps."""
    store, waits = make_store(), make_store()
    waits.due()
    token = taken(store)
    waits.wait(LONG)  # told of its creation
    store.save("r1", token, {})
    store.save("r1", token, {}, wake_at=None, keep=False)
    waits.wait(0)
    with waits._connected() as connection:
        assert list(connection.notifies(timeout=0)) == []


# Locks


def test_a_claim_passes_by_what_another_transaction_holds(
    store: PostgresStore, other: psycopg.Connection, postgres_url: str
) -> None:
    """It does not wait: that would be told as a lock that was not to be had."""
    store.create("r1", {"n": 0})
    url = f"{postgres_url}&options=-c%20lock_timeout%3D1s"
    with closing(PostgresStore(url)) as claims:
        other.execute("UPDATE agent_leases SET token = token WHERE run_id = 'r1'")
        assert claims.take("r1", "b", LONG) is None
        other.rollback()
        assert claims.take("r1", "b", LONG) is not None


def _until_blocked(other: psycopg.Connection) -> None:
    while not is_blocked(other):
        pass


def test_a_stale_save_during_a_takeover_is_fenced(
    store: PostgresStore, other: psycopg.Connection, aside: ThreadPoolExecutor
) -> None:
    """It began while its token was the newest, and ends when it is not."""
    token = taken(store)
    other.execute("UPDATE agent_leases SET token = token + 1, owner = 'b'")
    saving = aside.submit(store.save, "r1", token, {"n": 1})
    _until_blocked(other)
    other.commit()
    with pytest.raises(Fenced, match=str(token)):
        saving.result(SECONDS_MAX)
    held = store.load("r1")
    assert held is not None
    assert (held.document, held.owner, held.token) == ({"n": 0}, "b", token + 1)


def test_a_save_during_a_takeover_that_fails_is_done(
    store: PostgresStore, other: psycopg.Connection, aside: ThreadPoolExecutor
) -> None:
    token = taken(store)
    other.execute("UPDATE agent_leases SET token = token + 1, owner = 'b'")
    saving = aside.submit(store.save, "r1", token, {"n": 1})
    _until_blocked(other)
    other.rollback()
    saving.result(SECONDS_MAX)
    held = store.load("r1")
    assert held is not None
    assert held.document == {"n": 1}


SLOW_CLOCK = """
    CREATE SCHEMA slow;
    CREATE FUNCTION slow.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock_shared(7);
        RETURN pg_catalog.clock_timestamp();
    END $$
"""


def test_a_claim_finds_the_document_that_was_saved_while_it_looked(
    store: PostgresStore,
    other: psycopg.Connection,
    aside: ThreadPoolExecutor,
    postgres_url: str,
) -> None:
    """Its statement began before the save was committed, and locks the rows after it.

    A clock that stands still holds it between the two.
    """
    token = taken(store)
    other.execute(SLOW_CLOCK)
    other.commit()
    path = "-c%20search_path%3Dslow,pg_catalog,public"
    with closing(PostgresStore(f"{postgres_url}&options={path}")) as claims:
        claims.load("r1")
        other.execute("SELECT pg_advisory_xact_lock(7)")
        claiming = aside.submit(
            claims._rows, CLAIM, run="r1", owner="b", over="a", seconds=LONG
        )
        _until_blocked(other)
        store.save("r1", token, {"n": 1}, keep=False)
        other.rollback()
        assert claiming.result(SECONDS_MAX)[0][0] == '{"n":1}'


# A server that comes and goes


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OwnServer]:
    """One that a test may crash."""
    server = OwnServer(tmp_path / "postgres")
    asyncio.run(server.start())
    yield server
    asyncio.run(server.stop())


def restart(server: OwnServer) -> None:
    asyncio.run(server.crash())
    asyncio.run(server.start_again())


def test_a_server_that_is_down_is_told_and_then_all_goes_on(
    server: OwnServer, make_database: Callable[[OwnServer], str]
) -> None:
    """Nothing is tried again unseen, and no run is lost."""
    with closing(PostgresStore(make_database(server))) as store:
        token = taken(store)
        asyncio.run(server.crash())
        with pytest.raises(StoreUnavailable, match="PostgreSQL"):
            store.save("r1", token, {"n": 1})
        with pytest.raises(StoreUnavailable, match="PostgreSQL"):
            store.load("r1")
        asyncio.run(server.start_again())
        store.save("r1", token, {"n": 2})
        held = store.load("r1")
        assert held is not None
        assert held.document == {"n": 2}
        restart(server)  # it was idle: nothing was sent that could be in doubt
        store.wait(0)
        assert store.due() == [Due("r1", "a")]


def test_a_commit_is_on_the_disk_whatever_the_role_says(
    server: OwnServer, make_database: Callable[[OwnServer], str]
) -> None:
    """The role waits for no disk, and what it wrote itself is lost in the crash."""
    url = make_database(server)
    with psycopg.connect(**server.connection("postgres"), autocommit=True) as ours:
        ours.execute(f"ALTER ROLE {server.role} SET synchronous_commit = off".encode())
        found = ours.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
        )
        ((writer,),) = found.fetchall()
    with closing(PostgresStore(url)) as store:
        store.create("r1", {"n": 0})
        server.freeze(writer)
        token = store.take("r1", "a", LONG)
        assert token is not None
        store.save("r1", token.token, {"n": 1})
        with psycopg.connect(url, autocommit=True) as careless:
            careless.execute("UPDATE agent_runs SET document = 'lost'")
        restart(server)
    with closing(PostgresStore(url)) as store:
        held = store.load("r1")
        assert held is not None
        assert (held.document, held.token) == ({"n": 1}, token.token)


def test_a_server_that_is_away_is_unavailable(tmp_path: Path) -> None:
    with closing(PostgresStore(f"postgresql:///db?host={tmp_path}")) as store:
        with pytest.raises(StoreUnavailable, match="OperationalError"):
            store.create("r1", {})
        with pytest.raises(StoreUnavailable, match="OperationalError"):
            store.wait(LONG)


# Tables


def test_who_makes_the_tables_beside_another_waits_for_its_commit(
    store: PostgresStore, other: psycopg.Connection, aside: ThreadPoolExecutor
) -> None:
    """And finds them: IF NOT EXISTS alone would see none, and then clash."""
    other.execute(SCHEMA.encode())
    creating = aside.submit(store.create, "r1", {})
    _until_blocked(other)
    other.commit()
    assert creating.result(SECONDS_MAX)


def test_of_processes_that_make_the_tables_at_once_none_fails(
    postgres_url: str,
) -> None:
    code = "sys.stdin.readline(); print(store.create('r1', {}))"
    each = [python(code, postgres_url) for _ in range(4)]
    for process in each:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert sorted(map(awaited, each)) == [*["False\n"] * 3, "True\n"]


def test_tables_that_are_there_are_not_made_again(
    store: PostgresStore, make_store: Make, other: psycopg.Connection
) -> None:
    """It would be a write, and wait for whoever writes."""
    store.create("r1", {})
    other.execute("LOCK TABLE agent_runs IN SHARE UPDATE EXCLUSIVE MODE")
    (before,) = other.execute("SELECT pg_current_xact_id()::text::bigint").fetchall()
    assert make_store().load("r1") is not None
    next_id = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    (after,) = other.execute(next_id).fetchall()
    assert after[0] <= before[0]


def test_a_table_of_somebody_else_is_left_alone(
    store: PostgresStore, other: psycopg.Connection
) -> None:
    other.execute("CREATE TABLE agent_runs (run_id text PRIMARY KEY, price int)")
    other.execute("INSERT INTO agent_runs VALUES ('r1', 7)")
    other.commit()
    for _ in range(2):
        with pytest.raises(UnreadableCheckpoint, match="not ours"):
            store.load("r1")
    assert other.execute("TABLE agent_runs").fetchall() == [("r1", 7)]


def test_a_poll_reads_no_run_that_is_over(
    store: PostgresStore, other: psycopg.Connection
) -> None:
    """It goes by the index, which has only those that are due some time."""
    store.create("r1", {})
    many = "SELECT 'x' || n, '{}' FROM generate_series(1, 5000) n"
    other.execute(f"INSERT INTO agent_runs (run_id, document) {many}".encode())
    other.execute("ANALYZE agent_runs")
    asked = "EXPLAIN SELECT run_id FROM agent_runs WHERE wake_at <= 1 ORDER BY wake_at"
    plan = "".join(row[0] for row in other.execute(asked))
    assert "agent_runs_due" in plan
    assert "Seq Scan" not in plan


# Documents


HARD: list[Any] = [
    *("\0", "a\0b", "\ud800", "\udfff\ud800", "\\u0000", "😀", 2**70, -0.0, 1e308),
    *({"\0": {"\ud800": [None, True, 1, 1.0]}}, {"b": 1, "a": 2}, "x" * 3_000_000),
]


@pytest.mark.parametrize("value", HARD, ids=lambda value: ascii(value)[:20])
def test_a_document_that_jsonb_would_refuse_or_change_comes_back(
    store: PostgresStore, value: object
) -> None:
    store.create("r1", {"value": value})
    held = store.load("r1")
    assert held is not None
    assert repr(held.document) == repr({"value": value})


@pytest.mark.parametrize(
    "damage",
    [
        *("UPDATE agent_runs SET document = 'not'", "DELETE FROM agent_leases"),
        *("UPDATE agent_runs SET document = '[]'", "UPDATE agent_runs SET document=''"),
    ],
)
def test_what_cannot_be_read_stays_as_it_is(
    store: PostgresStore, other: psycopg.Connection, damage: str
) -> None:
    store.create("r1", {"n": 0})
    other.execute(damage.encode())
    other.commit()
    asked = b"SELECT * FROM agent_runs LEFT JOIN agent_leases USING (run_id)"
    before = other.execute(asked).fetchall()
    for do in (store.load, lambda run: store.take(run, "a", LONG)):
        with pytest.raises(UnreadableCheckpoint):
            do("r1")
    assert not store.create("r1", {})
    assert other.execute(asked).fetchall() == before


def test_an_error_tells_nothing_of_the_document(
    store: PostgresStore, other: psycopg.Connection
) -> None:
    """PostgreSQL shows the row that it refuses; errors end up in logs."""
    store.create("r1", {"n": 0})
    other.execute("ALTER TABLE agent_runs ADD CHECK (document NOT LIKE '%secret%')")
    other.commit()
    with pytest.raises(StoreUnavailable, match="CheckViolation") as told:
        store.create("r2", {"n": "secret"})
    assert "secret" not in str(told.value).replace("'%secret%'", "")


def test_a_connection_that_was_closed_while_idle_costs_nothing(
    store: PostgresStore, other: psycopg.Connection
) -> None:
    """A server may close what is idle, in the minute that a model takes to answer."""
    store.create("r1", {"n": 0})
    held = store.take("r1", "me", LONG)
    assert held is not None
    other.autocommit = True
    ours = "SELECT pid FROM pg_stat_activity WHERE query ~ 'agent_' AND pid <> %s"
    pids = other.execute(ours, (other.info.backend_pid,)).fetchall()
    assert pids
    for (pid,) in pids:
        other.execute("SELECT pg_terminate_backend(%s, 60000)", (pid,))
    store.save("r1", held.token, {"n": 1})
    loaded = store.load("r1")
    assert loaded is not None
    assert loaded.document == {"n": 1}
