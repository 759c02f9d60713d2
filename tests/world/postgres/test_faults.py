"""What each fault is on `postgres`, seen by a plain client of psycopg."""

import asyncio
import time
from contextlib import asynccontextmanager

import psycopg
import pytest

from chaoskit.wire.postgres.framing import message, query, ready

INSERT = "INSERT INTO t (v) VALUES (%s)"
AT = "0:postgres.insert[t]#2"
EDGES = [("before", ["a"]), ("after", ["a", "b"])]


@pytest.fixture
def trial(on_postgres):
    """A trial with a schedule, and the next one after it, which has no trace of it."""

    @asynccontextmanager
    async def run(schedule, *, own=False, durability="on"):
        async with on_postgres(own=own) as bench:
            await bench.trial(schedule, durability=durability)
            client = await bench.table()
            await client.execute(INSERT, ["a"])
            yield bench, client
            assert bench.fired() == [schedule]
            await bench.over()
            await bench.trial()
            client = await bench.table()
            await client.execute(INSERT, ["a"])
            await client.execute(INSERT, ["b"])
            assert await bench.rows() == ["a", "b"]
            assert bench.fired() == []

    return run


async def _lost(client, sql=INSERT, values=("b",)):
    """The connection ends without an answer."""
    with pytest.raises(psycopg.OperationalError) as lost:
        await client.execute(sql, values)
    assert lost.value.sqlstate is None
    assert client.broken


async def _goes_on(bench, left):
    """The store holds that, and a new connection works."""
    assert await bench.rows() == left
    await (await bench.connect()).execute(INSERT, ["c"])
    assert await bench.rows() == [*left, "c"]


@pytest.mark.proves("postgres.refuse")
async def test_refuse(trial):
    async with trial(f"refuse@{AT}:before") as (bench, client):
        await _lost(client)
        await _goes_on(bench, ["a"])


@pytest.mark.proves("postgres.drop_reply")
async def test_drop_reply_is_a_lost_acknowledgement(trial):
    async with trial(f"drop_reply@{AT}:after") as (bench, client):
        await _lost(client)
        await _goes_on(bench, ["a", "b"])


@pytest.mark.proves("postgres.drop_reply", "postgres.refuse")
@pytest.mark.parametrize(
    ("kind", "edge", "left"),
    [("refuse", "before", []), ("drop_reply", "after", ["a", "b"])],
)
async def test_a_lost_commit_of_a_transaction(on_postgres, kind, edge, left):
    async with on_postgres(f"{kind}@0:postgres.commit[tx]#1:{edge}") as bench:
        await bench.table()
        client = await bench.connect(autocommit=False)
        await client.execute(INSERT, ["a"])
        await client.execute(INSERT, ["b"])
        with pytest.raises(psycopg.OperationalError):
            await client.commit()
        assert await bench.rows() == left


@pytest.mark.proves("postgres.error")
@pytest.mark.parametrize("code", ["40001", "40P01", "55P03"])
@pytest.mark.parametrize(("edge", "left"), EDGES)
async def test_error(trial, code, edge, left):
    async with trial(f"error({code})@{AT}:{edge}") as (bench, client):
        with pytest.raises(psycopg.Error) as failed:
            await client.execute(INSERT, ["b"])
        assert failed.value.sqlstate == code
        assert client.info.transaction_status.name == "IDLE"
        assert await bench.rows() == left
        await client.execute(INSERT, ["c"])
        assert await bench.rows() == [*left, "c"]


@pytest.mark.proves("postgres.error")
@pytest.mark.parametrize("code", ["57P01", "53300"])
@pytest.mark.parametrize(("edge", "left"), EDGES)
async def test_error_that_ends_the_connection(trial, code, edge, left):
    async with trial(f"error({code})@{AT}:{edge}") as (bench, client):
        with pytest.raises(psycopg.OperationalError) as failed:
            await client.execute(INSERT, ["b"])
        assert failed.value.sqlstate == code
        assert failed.value.diag.severity == "FATAL"
        assert client.broken
        await _goes_on(bench, left)


@pytest.mark.parametrize(
    ("edge", "left"), [("before", ["c"]), ("after", ["a", "b", "c"])]
)
async def test_a_commit_that_fails_has_ended_its_transaction(on_postgres, edge, left):
    async with on_postgres(f"error@0:postgres.commit[tx]#1:{edge}") as bench:
        await bench.table()
        client = await bench.connect(autocommit=False)
        await client.execute(INSERT, ["a"])
        await client.execute(INSERT, ["b"])
        with pytest.raises(psycopg.errors.SerializationFailure):
            await client.commit()
        assert client.info.transaction_status.name == "IDLE"
        await client.rollback()
        await client.execute(INSERT, ["c"])
        await client.commit()
        assert await bench.rows() == left
        assert bench.crossed(":before")[-2:] == ["commit[tx]#1", "commit[tx]#2"]


@pytest.mark.parametrize(("edge", "left"), [("before", []), ("after", ["a", "b"])])
async def test_an_error_ends_its_part_of_a_pipeline(on_postgres, edge, left):
    """Up to the next Sync, as the server's own errors do; the connection goes on."""
    async with on_postgres(f"error(40001)@0:postgres.insert[t]#1:{edge}") as bench:
        client = await bench.table()
        async with client.pipeline() as pipeline:
            await client.execute(INSERT, ["a"])
            await client.execute(INSERT, ["b"])
            with pytest.raises(psycopg.errors.SerializationFailure):
                await pipeline.sync()
            await client.execute(INSERT, ["c"])
        assert await bench.rows() == [*left, "c"]


@pytest.mark.parametrize(("edge", "left"), [("before", []), ("after", ["a"])])
async def test_an_error_at_the_end_of_a_copy(on_postgres, edge, left):
    async with on_postgres(f"error@0:postgres.copy[t]#1:{edge}") as bench:
        client = await bench.table()
        copy = client.cursor().copy("COPY t (v) FROM STDIN")
        await (await copy.__aenter__()).write_row(["a"])
        with pytest.raises(psycopg.errors.SerializationFailure):
            await copy.__aexit__(None, None, None)
        assert await bench.rows() == left
        await client.execute(INSERT, ["c"])
        assert await bench.rows() == [*left, "c"]


@pytest.mark.parametrize(("edge", "left"), [("before", []), ("after", ["a"])])
async def test_an_error_at_a_commit_inside_a_pipeline(on_postgres, edge, left):
    """What was done before, and seen by the client, is undone with it."""
    async with on_postgres(f"error@0:postgres.commit[tx]#1:{edge}") as bench:
        client = await bench.table()
        async with client.pipeline() as pipeline:
            await client.execute("BEGIN")
            done = await client.execute(f"{INSERT} RETURNING v", ["a"])
            assert await done.fetchall() == [("a",)]
            with pytest.raises(psycopg.errors.SerializationFailure):
                await _synced(client, pipeline, "COMMIT")
            assert client.info.transaction_status.name == "IDLE"
            await client.execute(INSERT, ["c"])
        assert await bench.rows() == [*left, "c"]


async def _synced(client, pipeline, statement):
    await client.execute(statement)
    await pipeline.sync()


@pytest.mark.proves("postgres.full")
async def test_full(trial):
    async with trial(f"full@{AT}:before") as (bench, client):
        with pytest.raises(psycopg.errors.DiskFull):
            await client.execute(INSERT, ["b"])
        assert await bench.rows() == ["a"]
        await client.execute(INSERT, ["c"])
        assert await bench.rows() == ["a", "c"]


@pytest.mark.proves("postgres.delay")
@pytest.mark.parametrize(("edge", "seen"), [("before", ["a"]), ("after", ["a", "b"])])
async def test_delay(trial, edge, seen):
    """Meanwhile others pass."""
    async with trial(f"delay(0.5)@{AT}:{edge}") as (bench, client):
        other = await bench.connect()
        began = time.monotonic()
        delayed = asyncio.create_task(client.execute(INSERT, ["b"]))
        while not bench.fired():
            await other.execute("SELECT 1")
        assert await bench.rows() == seen
        await other.execute("INSERT INTO t (v) VALUES ('other')")
        assert not delayed.done()
        await delayed
        assert time.monotonic() - began >= 0.5
        assert sorted(await bench.rows()) == ["a", "b", "other"]


@pytest.mark.parametrize("edge", ["before", "after"])
async def test_while_a_message_is_held_others_can_connect(on_postgres, edge):
    """As a second life does, while the first one is stopped at it."""
    async with on_postgres(f"delay(0.5)@0:postgres.insert[t]#1:{edge}") as bench:
        client = await bench.table()
        delayed = asyncio.create_task(client.execute(INSERT, ["a"]))
        while not bench.fired():
            await bench.rows("SELECT 1")
        other = await bench.connect()
        await other.execute(INSERT, ["b"])
        assert not delayed.done()
        await delayed
        assert sorted(await bench.rows()) == ["a", "b"]


@pytest.mark.proves("postgres.tear")
async def test_tear(trial):
    """Half of the reply comes, and then a reset."""
    sql = "INSERT INTO t (v) VALUES ('b')"
    async with trial(f"tear@{AT}:part:1") as (bench, _):
        whole = message(b"C", b"INSERT 0 1\0") + ready(b"I")
        reader, writer = await bench.raw()
        writer.write(query(sql))
        half = whole[: len(whole) // 2]
        assert await reader.readexactly(len(half)) == half
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
        writer.close()
        await _goes_on(bench, ["a", "b"])


@pytest.mark.proves("postgres.restart")
@pytest.mark.parametrize(("edge", "left"), EDGES)
async def test_restart_loses_nothing_that_was_synced(trial, edge, left):
    async with trial(f"restart@{AT}:{edge}", own=True) as (bench, client):
        other = await bench.connect(autocommit=False)
        await other.execute(INSERT, ["uncommitted"])
        began = "SELECT extract(epoch FROM pg_postmaster_start_time())"
        (first,) = await bench.rows(began)
        await _lost(client)
        assert await bench.rows(began) > [first]
        with pytest.raises(psycopg.OperationalError):
            await other.commit()
        await _goes_on(bench, left)


@pytest.mark.proves("postgres.restart")
async def test_restart_loses_what_nobody_waited_for(trial):
    """All of it, each time: not what the moment happens to have left."""
    async with trial(f"restart@{AT}:after", own=True, durability="off") as (b, client):
        assert await b.rows() == ["a"]
        await _lost(client)
        assert await b.service.view() == {"tables": {}, "sequences": {}, "schema": []}


@pytest.mark.proves("postgres.rollback")
@pytest.mark.parametrize(("count", "left"), [(1, ["a", "b"]), (2, ["a"]), (9, None)])
async def test_rollback(on_postgres, count, left):
    """The client is told that it is committed, and it is not there any more."""
    schedule = f"rollback({count})@0:postgres.insert[t]#3:after"
    async with on_postgres(schedule) as bench:
        client = await bench.table()
        for value in "abc":
            await client.execute(INSERT, [value])
        if left is None:
            assert (await bench.service.view())["tables"] == {}
        else:
            assert await bench.rows() == left
            await client.execute(INSERT, ["d"])
            assert await bench.rows() == [*left, "d"]
        assert bench.fired() == [schedule]


@pytest.mark.proves("postgres.rollback")
async def test_rollback_ends_the_transactions_of_others(on_postgres):
    async with on_postgres("rollback(1)@0:postgres.update[t]#1:after") as bench:
        client = await bench.table()
        await client.execute(INSERT, ["a"])
        other = await bench.connect(autocommit=False)
        await other.execute(INSERT, ["b"])
        await client.execute("UPDATE t SET v = 'x'")
        with pytest.raises(psycopg.OperationalError):
            await other.commit()
        assert await bench.rows() == ["a"]


@pytest.mark.proves("postgres.rollback")
@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("locks", ["DROP TABLE t", "TRUNCATE t RESTART IDENTITY"])
async def test_rollback_of_what_locks_a_sequence(on_postgres, locks, autocommit):
    """The state before the commit is read while nobody else may read the sequence."""
    alone = "drop_table[t]" if "DROP" in locks else "truncate[t]"
    schedule = f"rollback(1)@0:postgres.{alone if autocommit else 'commit[tx]'}#1:after"
    async with on_postgres(schedule) as bench:
        await (await bench.table()).execute(INSERT, ["a"])
        client = await bench.connect(autocommit=autocommit)
        await client.execute(locks)
        await client.commit()
        assert bench.fired() == [schedule], bench.crossed()
        assert await bench.rows() == ["a"]
        assert await bench.rows("SELECT nextval('t_id_seq')") == [2]
