"""A look of the harness's own leaves no trace in the database, where nobody else is."""

from contextlib import asynccontextmanager

import pytest


@asynccontextmanager
async def guest(bench, **options):
    """A look by a command of the agent's, within its shelter."""
    async with bench.service.sheltered():
        await bench.open(-1)
        yield await bench.connect(**options)
        await bench.over(-1)


@pytest.mark.parametrize(
    "heals",
    [
        "INSERT INTO t (v) VALUES ('healed')",
        "UPDATE t SET v = v || 'healed'",
        "DELETE FROM t",
        "TRUNCATE t",
        "ALTER TABLE t ADD COLUMN w int",
        "CREATE TABLE u (v text)",
        "DROP TABLE t",
        "SELECT nextval('t_id_seq')",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ],
)
@pytest.mark.parametrize("autocommit", [True, False])
async def test_what_a_guest_commits_is_undone(on_postgres, heals, autocommit):
    """Rows and schema, in a transaction and without one."""
    async with on_postgres() as bench:
        await (await bench.table()).execute("INSERT INTO t (v) VALUES ('a'), ('b')")
        await bench.over()
        before = await bench.service.view()
        async with guest(bench, autocommit=autocommit) as connection:
            await connection.execute(heals)
            await connection.execute("CREATE TABLE also (v text)")
            await connection.commit()
        assert await bench.service.view() == before
        await bench.open(1)
        await (await bench.connect()).execute("INSERT INTO t (v) VALUES ('c')")
        assert await bench.rows() == ["a", "b", "c"]


async def test_a_guest_that_changes_nothing_costs_nothing(on_postgres):
    """What frameworks do at each start: the rows stay the very same."""
    async with on_postgres() as bench:
        await (await bench.table()).execute("INSERT INTO t (v) VALUES ('a')")
        await bench.over()
        before = await bench.rows("SELECT xmin::text || ctid::text FROM t")
        async with guest(bench) as connection:
            await connection.execute("CREATE TABLE IF NOT EXISTS t (id int)")
        assert await bench.rows("SELECT xmin::text || ctid::text FROM t") == before


async def test_nothing_is_undone_where_somebody_else_is_there(on_postgres):
    """It would take back what they write."""
    async with on_postgres() as bench:
        agent = await bench.table()
        async with guest(bench) as connection:
            await connection.execute("INSERT INTO t (v) VALUES ('guest')")
        await agent.execute("INSERT INTO t (v) VALUES ('mine')")
        assert await bench.rows() == ["guest", "mine"]


async def test_a_rollback_does_not_count_what_a_guest_committed(on_postgres):
    """The last commit is the agent's, not the look's."""
    async with on_postgres("rollback@1:postgres.insert[t]#1:after") as bench:
        await (await bench.table()).execute("INSERT INTO t (v) VALUES ('old')")
        await bench.over()
        async with guest(bench) as connection:
            await connection.execute("INSERT INTO t (v) VALUES ('guest')")
        await bench.open(1)
        await (await bench.connect()).execute("INSERT INTO t (v) VALUES ('new')")
        assert bench.fired() == ["rollback@1:postgres.insert[t]#1:after"]
        assert await bench.rows() == ["old"]
