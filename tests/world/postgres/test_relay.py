"""Through the relay PostgreSQL is PostgreSQL, and every commit in it is a crossing."""

import asyncio
import threading

import asyncpg
import psycopg
import pytest
from psycopg import sql

INSERT = "INSERT INTO t (v) VALUES (%s)"
TIMES_SHORT, TIMES_FULL = 5, 100


async def _statements(client):
    """What an ordinary program does, on a connection of psycopg that commits itself."""
    told = []

    async def do(query, *values):
        try:
            cursor = await client.execute(query, values or None)
        except psycopg.Error as error:
            told.append((error.sqlstate, str(error)))
        else:
            rows = await cursor.fetchall() if cursor.description else None
            told.append((cursor.statusmessage, rows))

    await do("CREATE TABLE t (id serial PRIMARY KEY, v text UNIQUE, n numeric)")
    for value in ("a", "b"):
        await do("INSERT INTO t (v, n) VALUES (%s, 1.5) RETURNING *", value)
    await do("INSERT INTO t (v) VALUES (%s)", "a")
    await do("INSERT INTO t (v) VALUES ('a')")
    await do("INSERT INTO t (v) VALUES ('x'); SELECT 1; UPDATE t SET n = 2")
    await do("INSERT INTO t (v) VALUES ('y'); SELECT 1/0")
    await do("SELECT nonsense")
    await do("")
    await do("SELECT v FROM t WHERE id = %s FOR UPDATE", 1)
    await do("DO $$ BEGIN INSERT INTO t (v) VALUES ('do'); COMMIT; END $$")
    await do("BEGIN")
    await do("INSERT INTO t (v) VALUES ('in')")
    await do("SAVEPOINT s")
    await do("INSERT INTO t (v) VALUES ('a')")
    await do("SELECT 1")
    await do("ROLLBACK TO s")
    await do("COMMIT AND CHAIN")
    await do("DELETE FROM t WHERE v = %s", "b")
    await do("ROLLBACK")
    await do("BEGIN; INSERT INTO t (v) VALUES ('one go'); COMMIT; SELECT 2")
    await do("BEGIN; SELECT 1/0; COMMIT")
    await do("COMMIT")
    await do("PREPARE p AS INSERT INTO t (v) VALUES ($1)")
    await do("EXECUTE p ('prepared')")
    await do("DEALLOCATE p")
    await do("ALTER TABLE t ADD CONSTRAINT once UNIQUE (n) DEFERRABLE")
    await do("VACUUM t")
    await do("CREATE INDEX CONCURRENTLY i ON t (n)")
    await do("SELECT v, n FROM t ORDER BY id")
    return told


async def _copied(client, rows, error=None):
    async with client.cursor().copy("COPY c FROM STDIN") as copy:
        for row in rows:
            await copy.write_row(row)
        if error is not None:
            raise error


async def _copies(client):
    await client.execute("CREATE TABLE c (a int, b text)")
    await _copied(client, ((number, "x" * 50) for number in range(3000)))
    with pytest.raises(psycopg.Error, match="invalid input syntax"):
        await _copied(client, [("no number", "x" * 50)] * 20000)
    with pytest.raises(ZeroDivisionError):
        await _copied(client, [(1, "never")], ZeroDivisionError())
    query = "COPY (SELECT a FROM c ORDER BY a) TO STDOUT"
    async with client.cursor().copy(query) as copy:
        return [bytes(piece) async for piece in copy]


async def _synced(client, pipeline, value):
    await client.execute("INSERT INTO p VALUES (%s)", [value])
    await pipeline.sync()


async def _pipeline(client):
    told = []
    await client.execute("CREATE TABLE p (v int PRIMARY KEY)")
    async with client.pipeline() as pipeline:
        cursors = [
            await client.execute("INSERT INTO p VALUES (%s) RETURNING v", [n])
            for n in range(300)
        ]
        told += [await cursor.fetchone() for cursor in cursors]
        await pipeline.sync()
        await client.execute("INSERT INTO p VALUES (1000)")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await _synced(client, pipeline, 1)
        async with client.transaction():
            await client.execute("INSERT INTO p VALUES (%s)", [2000])
        told.append(client.pgconn.pipeline_status)
    told += await (await client.execute("SELECT v FROM p ORDER BY v")).fetchall()
    return told


async def _transactions(client):
    await client.set_autocommit(False)
    await client.execute("CREATE TABLE x (v text)")
    await client.commit()
    for value in ("a", "b"):
        await client.execute("INSERT INTO x VALUES (%s)", [value])
    await client.rollback()
    async with client.transaction():
        await client.cursor().executemany("INSERT INTO x VALUES (%s)", [["c"], ["d"]])
        with pytest.raises(psycopg.Error):
            async with client.transaction():
                await client.execute("SELECT 1/0")
    return await (await client.execute("SELECT * FROM x")).fetchall()


async def _large(client):
    """More than fits into any buffer on the way, both ways."""
    big = "x" * 3_000_000
    await client.execute("CREATE TABLE l AS SELECT %s::text AS v", [big])
    rows = await (await client.execute("SELECT v FROM l")).fetchall()
    many = "SELECT n, repeat('y', 100) FROM generate_series(1, 30000) n"
    return rows, await (await client.execute(many)).fetchall()


@pytest.mark.parametrize(
    "work", [_statements, _copies, _pipeline, _transactions, _large]
)
async def test_a_workload_of_psycopg_is_the_same_with_and_without(on_postgres, work):
    async with on_postgres() as bench:
        relayed = await work(await bench.connect()), await bench.service.view()
        assert bench.crossed()
        await bench.over()
        await bench.trial()
        server = bench.service.server
        where = {**server.connection(server.database), "user": server.role}
        async with await psycopg.AsyncConnection.connect(
            **where, autocommit=True
        ) as client:
            direct = await work(client), await bench.service.view()
        assert relayed == direct


async def _asyncpg_work(client):
    told = [await client.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")]
    told.append(await client.execute("INSERT INTO t VALUES ($1, $2)", 1, "a"))
    await client.executemany("INSERT INTO t VALUES ($1, 'm')", [(n,) for n in (2, 3)])
    statement = await client.prepare("SELECT v FROM t WHERE id = $1")
    told += [await statement.fetchval(n) for n in (1, 2)]
    try:
        await client.execute("INSERT INTO t VALUES (1, 'again')")
    except asyncpg.UniqueViolationError as error:
        told.append(str(error))
    async with client.transaction():
        told.append(await client.execute("UPDATE t SET v = 'u' WHERE id = $1", 2))
        async for row in client.cursor("SELECT * FROM t ORDER BY id", prefetch=1):
            told.append(tuple(row))
    records = [(n, "c" * 100) for n in range(10, 2000)]
    told.append(await client.copy_records_to_table("t", records=records))
    told.append(len(await client.fetch("SELECT * FROM t")))
    return told


async def test_a_workload_of_asyncpg_is_the_same_with_and_without(on_postgres):
    async with on_postgres() as bench:
        client = await asyncpg.connect(bench.url)
        relayed = await _asyncpg_work(client), await bench.service.view()
        await client.close()
        assert bench.crossed(":after") == [
            *("create_table[t]#1", "insert[t]#1", "insert[t]#2", "insert[t]#3"),
            *("commit[tx]#1", "copy[t]#1"),
        ]
        await bench.trial()
        server = bench.service.server
        where = server.connection(server.database)
        client = await asyncpg.connect(
            host=where["host"], user=server.role, database=server.database
        )
        direct = await _asyncpg_work(client), await bench.service.view()
        await client.close()
        assert relayed == direct


async def test_a_client_that_blocks_is_served_too(on_postgres):
    """The sync client of psycopg, in a thread of its own."""
    async with on_postgres() as bench:

        def work(url):
            with psycopg.connect(url) as client:
                client.execute("CREATE TABLE t (v int)")
                client.execute(INSERT, [1])
            with psycopg.connect(url) as client:
                return client.execute("SELECT v FROM t").fetchall()

        assert await asyncio.to_thread(work, bench.url) == [(1,)]
        assert bench.crossed(":after") == ["commit[tx]#1"]
        assert threading.active_count() >= 1


async def test_what_is_pushed_passes_and_is_no_crossing(on_postgres):
    async with on_postgres() as bench:
        listener, speaker = await bench.connect(), await bench.connect()
        await listener.execute("LISTEN news")
        await speaker.execute("NOTIFY news, 'one'")
        await speaker.execute("SELECT pg_notify('news', 'two')")
        async with speaker.transaction():
            await speaker.execute("NOTIFY news, 'three'")
        heard = [note.payload async for note in listener.notifies(stop_after=3)]
        assert heard == ["one", "two", "three"]
        assert bench.crossed() == []


@pytest.mark.parametrize(
    ("statements", "crossed"),
    [
        (["INSERT INTO t (v) VALUES ('a')"], ["insert[t]#1"]),
        (["BEGIN", "INSERT INTO t (v) VALUES ('a')", "COMMIT"], ["commit[tx]#1"]),
        (["BEGIN", "INSERT INTO t (v) VALUES ('a')", "ROLLBACK"], []),
        (["BEGIN", "SELECT * FROM t FOR UPDATE", "COMMIT"], []),
        (["BEGIN; INSERT INTO t (v) VALUES ('a')", "END"], ["commit[tx]#1"]),
        (["INSERT INTO t (v) VALUES ('a'); DELETE FROM t"], ["insert[t]#1"]),
        (["BEGIN; DELETE FROM t; COMMIT; SELECT 1"], ["commit[tx]#1"]),
        (["SELECT nextval('t_id_seq')", "SELECT setval('t_id_seq', 7)"], None),
        (["SELECT pg_advisory_lock(1)", "LISTEN x", "SET work_mem = '4MB'"], []),
        (["WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x"], ["delete[t]#1"]),
        (["TRUNCATE t", "VACUUM t", "ANALYZE t", "CHECKPOINT"], ["truncate[t]#1"]),
        (["EXPLAIN DELETE FROM t", "EXPLAIN ANALYZE DELETE FROM t"], ["delete[t]#1"]),
        (["BEGIN", "DELETE FROM t", "SAVEPOINT s", "ROLLBACK TO s", "COMMIT"], None),
        (["CREATE TABLE t2 AS SELECT 1", "DROP TABLE t2"], None),
        (["PREPARE p AS DELETE FROM t", "EXECUTE p"], ["delete[t]#1"]),
    ],
)
async def test_what_is_a_crossing(on_postgres, statements, crossed):
    known = {
        "SELECT nextval('t_id_seq')": ["nextval[t_id_seq]#1", "setval[t_id_seq]#1"],
        "BEGIN": ["commit[tx]#1"],
        "CREATE TABLE t2 AS SELECT 1": ["create_table[t2]#1", "drop_table[t2]#1"],
    }
    crossed = known[statements[0]] if crossed is None else crossed
    async with on_postgres() as bench:
        client = await bench.table()
        for statement in statements:
            try:
                await client.execute(statement)
            except psycopg.errors.InsufficientPrivilege:
                assert statement == "CHECKPOINT"
        assert bench.crossed(":after") == ["create_table[t]#1", *crossed]


async def test_a_function_that_may_write_is_known_once_it_is_made(on_postgres):
    """Also in a trial that begins with it; and one that cannot write is none."""
    async with on_postgres() as bench:
        client = await bench.table()
        for name, kind in (("pay", "VOLATILE"), ("look", "STABLE")):
            body = f"{name}() RETURNS int LANGUAGE sql {kind} AS 'SELECT 1'"
            await client.execute(f"CREATE FUNCTION {body}")
            await client.execute(f"SELECT {name}()")
        assert bench.crossed(":after")[1:] == [
            *("create_function[pay]#1", "select[pay]#1", "create_function[look]#1"),
        ]
        snapshot = await bench.service.snapshot()
        await bench.trial()
        await bench.service.restore(snapshot)
        await (await bench.connect()).execute("SELECT pay(), look()")
        assert bench.crossed(":after") == ["select[pay]#1"]
        await bench.trial()
        with pytest.raises(psycopg.errors.UndefinedFunction):
            await (await bench.connect()).execute("SELECT pay()")
        assert bench.crossed() == []


async def test_who_waits_for_a_lock_keeps_nobody_from_the_door(on_postgres):
    """The holder's COMMIT has to pass for the other's statement to be done."""
    async with on_postgres() as bench:
        setup = await bench.table()
        await setup.execute(INSERT, ["a"])
        holder, waiter = await bench.connect(autocommit=False), await bench.connect()
        third = await bench.connect()
        await holder.execute("UPDATE t SET v = 'holder'")
        waiting = [
            asyncio.create_task(client.execute(statement, values))
            for client, statement, values in (
                (waiter, "UPDATE t SET v = v || %s", ["+"]),
                (setup, "UPDATE t SET v = v || '-'", None),
                (third, "SELECT 1; UPDATE t SET v = v || '*'", None),
            )
        ]
        blocked = "SELECT DISTINCT pid FROM pg_locks WHERE NOT granted"
        real = await bench.real()
        while len(await (await real.execute(blocked)).fetchall()) < 3:
            pass
        await holder.commit()
        await asyncio.gather(*waiting)
        assert sorted(*await bench.rows()) == sorted("holder+-*")
        assert sorted(bench.crossed(":after")[2:]) == [
            *("commit[tx]#1", "update[t]#1", "update[t]#2", "update[t]#3"),
        ]


async def test_a_client_can_cancel_what_it_waits_for(on_postgres):
    async with on_postgres() as bench:
        client = await bench.connect()
        real = await bench.real()
        sleeping = asyncio.create_task(client.execute("SELECT pg_sleep(30)"))
        there = "SELECT pid FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep'"
        while not await (await real.execute(there)).fetchall():
            pass
        await client.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            await sleeping
        assert await (await client.execute("SELECT 1")).fetchone() == (1,)


async def test_the_role_of_the_harness_is_not_the_agents(on_postgres):
    async with on_postgres(own=True) as bench:
        for user in ("chaoskit", "nobody-else"):
            with pytest.raises(
                psycopg.OperationalError, match=r"DATABASE_URL|not exist"
            ):
                await bench.connect(user=user)
        with pytest.raises(psycopg.OperationalError, match="replication"):
            await bench.connect(replication="database")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await (await bench.connect()).execute("ALTER SYSTEM SET port = 1")


async def test_what_is_not_the_protocol_is_refused(on_postgres):
    async with on_postgres() as bench:
        port = int(bench.url.rpartition(":")[2].partition("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert b"08P01" in await reader.read()
        writer.close()


async def test_names_that_are_odd_are_names(on_postgres):
    async with on_postgres() as bench:
        client = await bench.connect()
        name = sql.Identifier("Größe; DROP")
        await client.execute(sql.SQL("CREATE TABLE {} (v int)").format(name))
        await client.execute(sql.SQL("INSERT INTO {} VALUES (1)").format(name))
        assert bench.crossed(":after")[-1] == (
            "insert[Gr%C3%B6%C3%9Fe%3B%20DROP]#1".replace("%3B", ";")
        )


async def test_the_same_schedule_gives_the_same_crossings(on_postgres, request):
    times = TIMES_FULL if request.config.getoption("--full") else TIMES_SHORT
    seen = set()
    async with on_postgres() as bench:
        for _ in range(times):
            await bench.trial("error@0:postgres.commit[tx]#1:before")
            client = await bench.connect(autocommit=False)
            await client.execute("CREATE TABLE t (v text)")
            with pytest.raises(psycopg.errors.SerializationFailure):
                await client.commit()
            await client.execute("CREATE TABLE t (v text)")
            await client.commit()
            await client.set_autocommit(True)
            async with client.pipeline():
                for value in ("a", "b"):
                    await client.execute(INSERT, [value])
            await client.execute("DELETE FROM t")
            seen.add((tuple(bench.crossed()), str(await bench.service.view())))
            await bench.over()
    assert len(seen) == 1
