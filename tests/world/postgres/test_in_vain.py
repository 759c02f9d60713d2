"""What several processes try in vain has no number, and so is the same in every run."""

import asyncio

import psycopg
import pytest

from chaoskit.trial.generations import Generations

CLAIM = """
    WITH free AS (
        SELECT id FROM t WHERE id = 1 AND v IS NULL FOR UPDATE SKIP LOCKED)
    UPDATE t SET v = 'mine' FROM free WHERE t.id = free.id"""
"""The usual claim of a queue."""
LOCKS = """
    WITH found AS (SELECT id FROM t WHERE id = 1 FOR UPDATE)
    UPDATE t SET v = 'x' FROM found WHERE t.id = found.id AND v = 'nobody'"""
"""What is locked is no change."""


@pytest.fixture
def fleet(on_postgres):
    """A server that two clients of one life use, and a gate that counts over both."""

    class Fleet:
        async def __aenter__(self):
            self.running = on_postgres()
            self.bench = await self.running.__aenter__()
            self.bench.gate._census = Generations(lambda: 0.0)
            self.one, self.other = [await self.bench.connect() for _ in range(2)]
            await self.one.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
            await self.one.execute("INSERT INTO t VALUES (1), (2)")
            return self

        async def __aexit__(self, *error):
            await self.running.__aexit__(*error)

        def numbered(self):
            """What has changed something, with its number."""
            return [at for at in self.bench.crossed(":after") if "update" in at]

    return Fleet


@pytest.mark.parametrize("statement", ["UPDATE t SET v = 'x' WHERE id = 9", LOCKS])
@pytest.mark.parametrize("as_block", [False, True])
@pytest.mark.parametrize("alone", [False, True])
async def test_a_claim_that_found_nothing(fleet, statement, as_block, alone):
    async with fleet() as f:
        if alone:
            await f.other.close()
        for each in (statement, CLAIM):
            if as_block:
                async with f.one.transaction():
                    await f.one.execute(each)
            else:
                await f.one.execute(each, prepare=each is CLAIM)
        name = "commit[tx]" if as_block else "update[t]"
        after = [at for at in f.bench.crossed(":after") if name in at]
        assert after == [f"{name}#1"]


async def test_one_that_fails_has_changed_nothing(fleet):
    async with fleet() as f:
        with pytest.raises(psycopg.errors.UniqueViolation):
            await f.one.execute("UPDATE t SET id = 2 WHERE id = 1")
        await f.other.execute("UPDATE t SET v = 'x' WHERE id = 1")
        assert f.numbered() == ["update[t]#1"]


@pytest.mark.parametrize(
    "statement",
    [
        "WITH gone AS (DELETE FROM t WHERE id = 2) UPDATE t SET v = 'x' WHERE id = 9",
        "WITH new AS (INSERT INTO t VALUES (3)) UPDATE t SET v = 'x' WHERE id = 9",
        "EXPLAIN ANALYZE UPDATE t SET v = 'y' WHERE id = 1",
    ],
)
async def test_what_is_changed_on_the_side_counts(fleet, statement):
    async with fleet() as f:
        await f.one.execute(statement)
        await f.one.execute("UPDATE t SET v = 'x' WHERE id = 1")
        assert f.numbered() == ["update[t]#1", "update[t]#2"]


async def test_what_a_trigger_does_instead_counts(fleet):
    """The server says INSERT 0 0, and the row is in another table."""
    async with fleet() as f:
        await f.one.execute("CREATE TABLE part (id int, v text)")
        await f.one.execute("""
            CREATE FUNCTION put_there() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO part VALUES (NEW.*); RETURN NULL; END $$""")
        await f.one.execute("""
            CREATE TRIGGER elsewhere BEFORE INSERT ON t
            FOR EACH ROW EXECUTE FUNCTION put_there()""")
        for n in (3, 4):
            done = await f.one.execute(f"INSERT INTO t VALUES ({n})")
            assert done.rowcount == 0
        inserted = [at for at in f.bench.crossed(":after") if "insert" in at]
        assert inserted == ["insert[t]#1", "insert[t]#2", "insert[t]#3"]


async def test_who_came_too_late_though_it_began_in_time(fleet):
    """Its statement finds the row free, waits, and has it locked when it is not."""
    async with fleet() as f:
        waits = "UPDATE t SET v = 'late' WHERE id = 1 AND v IS NULL"
        real = await f.bench.real()
        async with real.transaction():
            await real.execute("UPDATE t SET v = 'early' WHERE id = 1")
            trying = asyncio.create_task(f.one.execute(waits))
            blocked = "SELECT 1 FROM pg_locks WHERE NOT granted"
            while await (await real.execute(blocked)).fetchone() is None:
                pass
        assert (await trying).rowcount == 0
        await f.other.execute("UPDATE t SET v = 'x' WHERE id = 1")
        assert f.numbered() == ["update[t]#1"]
