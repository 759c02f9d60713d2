"""A life that ends leaves in PostgreSQL what had been committed, and nothing else."""

import asyncio

import psycopg
import pytest

from chaoskit.wire.postgres.framing import SYNC, message, ready

INSERT = "INSERT INTO t (v) VALUES (%s)"
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"


async def _killed(client, statement, values=None):
    with pytest.raises(psycopg.OperationalError):
        await client.execute(statement, values)


async def _table_in_life_0(bench):
    """A committed table, and a connection that commits by itself."""
    client = await bench.table()
    await client.execute(INSERT, ["first"])
    return client


async def _sessions(bench):
    real = await bench.real()
    told = await real.execute(SESSIONS, [bench.service.server.role])
    (count,) = await told.fetchone()
    await real.close()
    return count


@pytest.mark.parametrize(("edge", "left"), [("before", []), ("after", ["v"])])
@pytest.mark.parametrize("values", [None, ["v"]], ids=["simple", "extended"])
@pytest.mark.parametrize("others", [0, 1])
async def test_killed_at_a_statement(on_postgres, edge, left, values, others):
    """Seen while the message is held, and afterwards."""
    async with on_postgres(f"kill@0:postgres.insert[t]#1:{edge}") as bench:
        client = await bench.table()
        for _ in range(others):
            await bench.connect()
        bench.look = bench.rows
        await _killed(client, INSERT if values else INSERT % "'v'", values)
        await bench.over()
        assert bench.found == [left]
        assert await bench.rows() == left
        assert bench.crossed()[-1] == f"insert[t]#1:{edge}"


@pytest.mark.parametrize(("edge", "left"), [("before", []), ("after", ["a", "b"])])
async def test_killed_at_the_commit_of_a_transaction(on_postgres, edge, left):
    async with on_postgres(f"kill@0:postgres.commit[tx]#1:{edge}") as bench:
        await bench.table()
        client = await bench.connect(autocommit=False)
        await client.execute(INSERT, ["a"])
        await client.execute(INSERT, ["b"])
        with pytest.raises(psycopg.OperationalError):
            await client.commit()
        await bench.over()
        assert await bench.rows() == left


@pytest.mark.parametrize(("edge", "left"), [("before", []), ("after", ["a", "b"])])
async def test_killed_at_the_end_of_a_copy(on_postgres, edge, left):
    async with on_postgres(f"kill@0:postgres.copy[t]#1:{edge}") as bench:
        client = await bench.table()
        copy = client.cursor().copy("COPY t (v) FROM STDIN")
        rows = await copy.__aenter__()
        for value in ("a", "b"):
            await rows.write_row([value])
        with pytest.raises(psycopg.OperationalError):
            await copy.__aexit__(None, None, None)
        await bench.over()
        assert await bench.rows() == left


def _inserts(values):
    """Extended messages, a Sync behind each INSERT."""
    for value in values:
        text = f"INSERT INTO t (v) VALUES ('{value}')".encode()
        yield message(b"P", b"\0" + text + b"\0\0\0")
        yield message(b"B", b"\0\0" + bytes(6))
        yield message(b"E", b"\0" + bytes(4)) + SYNC


DONE = b"".join(
    (message(b"1"), message(b"2"), message(b"C", b"INSERT 0 1\0"), ready(b"I"))
)


@pytest.mark.parametrize(("edge", "left"), [("before", "a"), ("after", "ab")])
async def test_a_pipeline_is_cut_where_the_kill_strikes(on_postgres, edge, left):
    """Three in one write; the second is struck, the third is never looked at."""
    async with on_postgres(f"kill@0:postgres.insert[t]#2:{edge}") as bench:
        await bench.table()
        reader, writer = await bench.raw()
        writer.write(b"".join(_inserts("abc")))
        assert await reader.readexactly(len(DONE)) == DONE
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
        writer.close()
        await bench.over()
        assert await bench.rows() == list(left)


async def test_when_close_returns_the_server_has_dropped_the_life(on_postgres):
    """Whoever asks next finds no session, no lock and no transaction of it."""
    async with on_postgres() as bench:
        await _table_in_life_0(bench)
        for life in range(5):
            if life:
                await bench.open(life)
            client = await bench.connect(autocommit=False)
            await client.execute("SELECT pg_advisory_lock(7)")
            await client.execute("UPDATE t SET v = 'x'")
            sleeper = await bench.connect()
            sleeping = asyncio.create_task(sleeper.execute("SELECT pg_sleep(60)"))
            await asyncio.sleep(0)
            await bench.over(life)
            with pytest.raises(psycopg.OperationalError):
                await sleeping
            assert await _sessions(bench) == 0
            assert await bench.rows("SELECT pg_try_advisory_lock(7)") == [True]
            assert await bench.rows("SELECT v FROM t FOR UPDATE NOWAIT") == ["first"]


async def test_a_message_past_before_is_applied_late(on_postgres, hold):
    """It is done once its life is over, and its session is gone then."""
    held = hold("0:postgres.insert[t]#2:before")
    async with on_postgres(watch=held) as bench:
        client = await _table_in_life_0(bench)
        lost = asyncio.create_task(_killed(client, INSERT, ["late"]))
        await held.held.wait()
        bench.gate.close(0)
        await bench.service.close(0)
        held.let_go.set()
        await bench.gate.settled(0)
        await lost
        assert await bench.rows() == ["first", "late"]
        assert bench.crossed()[-1] == "insert[t]#2:after late"
        assert await _sessions(bench) == 0


async def test_who_waits_for_a_lock_of_its_own_life_is_applied_late(on_postgres):
    """The lock's holder had not come to its COMMIT, so that it is undone."""
    async with on_postgres() as bench:
        await _table_in_life_0(bench)
        holder, waiter = await bench.connect(autocommit=False), await bench.connect()
        await holder.execute("UPDATE t SET v = 'holder'")
        lost = asyncio.create_task(_killed(waiter, "UPDATE t SET v = v || '+'"))
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while await bench.rows(waits) == [0]:
            pass
        await bench.over()
        await lost
        assert await bench.rows() == ["first+"]
        assert bench.crossed()[-1] == "update[t]#1:after late"


async def test_a_life_may_be_closed_while_the_gate_holds_its_message(on_postgres):
    """`close` must not wait for the message that its caller is holding."""
    async with on_postgres("kill@0:postgres.insert[t]#2:after") as bench:
        client = await _table_in_life_0(bench)
        bench.look = lambda: bench.service.close(0)
        await _killed(client, INSERT, ["second"])
        await bench.over()
        assert await bench.rows() == ["first", "second"]
        assert await _sessions(bench) == 0


async def test_a_closed_life_begins_nothing_more(on_postgres):
    async with on_postgres() as bench:
        client = await _table_in_life_0(bench)
        url = bench.url
        await bench.over()
        await _killed(client, INSERT, ["second"])
        with pytest.raises(psycopg.OperationalError):
            await psycopg.AsyncConnection.connect(url)
        await bench.open(1)
        assert bench.url == url, "an address that was stored stays true"
        await (await bench.connect()).execute(INSERT, ["third"])
        assert await bench.rows() == ["first", "third"]


async def test_the_next_trial_finds_an_empty_database(on_postgres):
    async with on_postgres() as bench:
        client = await _table_in_life_0(bench)
        await client.execute("CREATE SCHEMA s CREATE TABLE u (v int)")
        await client.execute("BEGIN")
        await client.execute("LOCK TABLE t")
        await bench.trial()
        view = await bench.service.view()
        assert view == {"tables": {}, "sequences": {}, "schema": []}
        await bench.table()


async def test_looking_waits_for_no_lock_of_the_agent(on_postgres):
    """A transaction that has changed a table keeps everybody from reading it.

    What it finds at a crash is what was there before.
    """
    found = []

    async def watch(address):
        if address.operation.op == "commit":
            found.append(await bench.service.view())
        return False

    async with on_postgres(watch=watch) as bench:
        client = await _table_in_life_0(bench)
        before = await bench.service.view()
        await client.execute("BEGIN")
        await client.execute("TRUNCATE t")
        await client.execute("ALTER TABLE t ADD COLUMN more int")
        await client.execute("COMMIT")
        assert found[0] == before
        assert found[1] == await bench.service.view()
        assert found[1]["tables"] == {"t": {}}


async def test_looking_waits_for_no_statement_that_waits_for_its_commit(on_postgres):
    """It has its lock, and its commit has to wait for the door that the look holds."""
    found = []
    locked = """SELECT count(*) FROM pg_locks WHERE granted AND locktype = 'relation'
        AND mode = 'AccessExclusiveLock' AND relation = 't'::regclass"""
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"

    async def watch(address):
        if str(address).endswith("insert[u]#1:after"):
            await holder.rollback()
            while await bench.rows(locked) == [0]:
                pass
            found.append((await bench.service.view())["tables"]["t"])
        return False

    async with on_postgres(watch=watch) as bench:
        client = await _table_in_life_0(bench)
        await client.execute("CREATE TABLE u (v int)")
        holder, other = await bench.connect(autocommit=False), await bench.connect()
        await holder.execute("UPDATE t SET v = 'holder'")
        truncating = asyncio.create_task(other.execute("TRUNCATE t"))
        while await bench.rows(waits) == [0]:
            pass
        await client.execute("INSERT INTO u VALUES (1)")
        await truncating
        assert found == [{"1": {"id": 1, "v": "first"}}]
        assert await bench.rows() == []


async def test_a_client_that_hangs_up_has_sent_what_had_arrived(on_postgres):
    """All of it is done; what lacks its Sync is undone, as the server does it."""
    async with on_postgres() as bench:
        await bench.table()
        reader, writer = await bench.raw()
        *sent, last = _inserts("abc")
        writer.write(b"".join((*sent, last.removesuffix(SYNC))))
        writer.write_eof()
        assert await reader.read() == DONE * 2
        writer.close()
        assert await bench.rows() == ["a", "b"]


@pytest.mark.parametrize("leaves", [True, False])
async def test_who_has_not_read_its_answer_keeps_no_life_open(on_postgres, leaves):
    async with on_postgres(seconds_max=20) as b:
        _, writer = await b.raw()
        (session,) = b.service.lives.sessions
        writer.transport.pause_reading()
        query = b"SELECT repeat('x', 1000000) FROM generate_series(1, 50)\0"
        writer.write(message(b"Q", query))
        real = await b.real()
        while session._writable.is_set():
            await real.execute("SELECT 1")
        if leaves:
            writer.transport.abort()
            await b.service.lives.over([session])
        await b.over()
        assert not b.service.lives.sessions
        writer.close()
