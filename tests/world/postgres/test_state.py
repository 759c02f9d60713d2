"""The state of PostgreSQL is copied, put back elsewhere, and looked at."""

import pickle

import psycopg
import pytest

from chaoskit.world.postgres.dump import Snapshot, Table
from chaoskit.world.postgres.role import RoleSettings
from chaoskit.world.postgres.view import view as view_of

EMPTY = {"tables": {}, "sequences": {}, "schema": []}
RICH = '''
CREATE SCHEMA other;
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE EXTENSION hstore;
CREATE TABLE parent (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text);
CREATE TABLE child (
    parent int REFERENCES parent, n int, twice int GENERATED ALWAYS AS (n * 2) STORED,
    m mood, h hstore, j jsonb, b bytea, f float8, t timestamptz, a text[],
    PRIMARY KEY (parent, n));
CREATE TABLE other."Odd; name" ("a ""b""" text);
CREATE TABLE parts (k int) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE UNLOGGED TABLE fast (v bool);
CREATE SEQUENCE counter START 5;
CREATE VIEW names AS SELECT name FROM parent;
CREATE MATERIALIZED VIEW kept AS SELECT name FROM parent;
CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN NEW.name = upper(NEW.name); RETURN NEW; END $$;
CREATE TRIGGER loud BEFORE INSERT ON parent FOR EACH ROW EXECUTE FUNCTION shout();
CREATE FUNCTION two() RETURNS int LANGUAGE sql BEGIN ATOMIC; SELECT 2; END;
CREATE FUNCTION odd() RETURNS text LANGUAGE sql AS $$
SELECT '
--
-- Name: no object; Type: NONE
--
'
$$;
COMMENT ON TABLE parent IS E'two\\nlines; --';
INSERT INTO parent (name) VALUES ('a'), (E'tab\\t new\\n line \\\\ back');
ALTER TABLE parent DISABLE TRIGGER loud;
INSERT INTO parent (name) VALUES ('not shouted');
INSERT INTO child (parent, n, m, h, j, b, f, t, a) VALUES
    (1, 1, 'sad', 'x=>1', '{"k": [1, null]}', '\\x00ff', 0.1, '2020-01-01', '{a,NULL}'),
    (1, 2, NULL, NULL, NULL, NULL, 'Infinity', NULL, NULL);
INSERT INTO other."Odd; name" VALUES (NULL), (''), ('\\N'), ('ü');
INSERT INTO parts VALUES (3);
INSERT INTO fast VALUES (true), (NULL);
REFRESH MATERIALIZED VIEW kept;
SELECT nextval('counter'), nextval('counter');
'''


async def test_all_of_it_is_put_back_in_another_server(on_postgres):
    async with on_postgres() as one, on_postgres(own=True) as other:
        await (await one.connect()).execute(RICH)
        snapshot = await one.service.snapshot()
        view = await one.service.view()
        await other.service.restore(pickle.loads(pickle.dumps(snapshot)))
        moved = await other.service.snapshot()
        assert moved == snapshot
        assert await other.service.view() == view
        odd = "SELECT odd()"
        assert await other.rows(odd) == await one.rows(odd)
        assert "no object" in (await other.rows(odd))[0]
        assert await other.rows("SELECT * FROM kept") == await one.rows(
            "SELECT * FROM kept"
        )


async def test_what_was_put_back_works(on_postgres):
    """Sequences go on, triggers and foreign keys hold, the agent owns it."""
    async with on_postgres() as bench:
        await (await bench.connect()).execute(RICH)
        snapshot = await bench.service.snapshot()
        await bench.trial()
        await bench.service.restore(snapshot)
        client = await bench.connect()
        insert = "INSERT INTO parent (name) VALUES ('x') RETURNING *"
        told = await client.execute(insert)
        assert await told.fetchall() == [(4, "x")]
        told = await client.execute("SELECT nextval('counter')")
        assert await told.fetchall() == [(7,)]
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            await client.execute("INSERT INTO child (parent, n) VALUES (99, 1)")
        await client.execute("ALTER TABLE parent ENABLE TRIGGER loud")
        await client.execute("DROP SCHEMA other CASCADE")


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO parent (name) VALUES ('more')",
        "DELETE FROM child; UPDATE parent SET name = 'x'",
        "SELECT setval('counter', 100)",
        "DROP TABLE child; CREATE TABLE child (z int); DROP SCHEMA other CASCADE",
        "CREATE TABLE more (v int); INSERT INTO more VALUES (1)",
        "CREATE EXTENSION citext; DROP EXTENSION hstore CASCADE",
    ],
)
async def test_whatever_is_there_an_earlier_state_takes_its_place(on_postgres, change):
    """While a client stays connected, as a rollback finds it."""
    async with on_postgres() as bench:
        client = await bench.connect()
        await client.execute(RICH)
        snapshot = await bench.service.snapshot()
        await client.execute("PREPARE p AS SELECT count(*) FROM parent")
        await client.execute(change)
        assert await bench.service.snapshot() != snapshot
        await bench.service.restore(snapshot)
        assert await bench.service.snapshot() == snapshot
        assert await (await client.execute("EXECUTE p")).fetchall() == [(3,)]


async def test_the_view_is_for_people(on_postgres):
    async with on_postgres() as bench:
        assert await bench.service.view() == EMPTY
        client = await bench.connect()
        await client.execute("CREATE TABLE t (id int PRIMARY KEY, ok bool, j jsonb)")
        await client.execute("CREATE TABLE u (v text); CREATE SEQUENCE s")
        await client.execute("INSERT INTO t VALUES (10, true, '{}'), (9, NULL, '[1]')")
        await client.execute(r"INSERT INTO u VALUES ('b'), (E'a\t\\'), ('b')")
        view = await bench.service.view()
        assert view["tables"] == {
            "t": {
                "9": {"id": 9, "ok": None, "j": [1]},
                "10": {"id": 10, "ok": True, "j": {}},
            },
            "u": {"type": "set", "value": [{"v": "a\t\\"}, {"v": "b"}, {"v": "b"}]},
        }
        assert list(view["tables"]["t"]) == ["9", "10"]
        assert view["sequences"] == {"s": "not before 1"}
        assert "CREATE TABLE public.t (" in view["schema"]


async def test_equal_states_look_the_same_however_they_came_about(on_postgres):
    async with on_postgres() as bench:
        client = await bench.table()
        await client.execute("INSERT INTO t (v) VALUES ('a'), ('b')")
        before = await bench.service.view()
        await client.execute("UPDATE t SET v = 'x' WHERE v = 'a'")
        await client.execute("UPDATE t SET v = 'a' WHERE v = 'x'")
        await client.execute("CREATE INDEX i ON t (v)")
        await client.execute("DROP INDEX i")
        assert await bench.service.view() == before


async def test_what_is_not_committed_is_no_state(on_postgres):
    async with on_postgres() as bench:
        client = await bench.table()
        before = await bench.service.snapshot()
        other = await bench.connect(autocommit=False)
        await other.execute("INSERT INTO t (id, v) VALUES (7, 'uncommitted')")
        await other.execute("CREATE TABLE unseen (v int)")
        await client.execute("SELECT pg_advisory_lock(1)")
        await client.execute("CREATE TEMP TABLE mine (v int)")
        assert await bench.service.snapshot() == before
        await bench.service.restore(before)
        with pytest.raises(psycopg.OperationalError):
            await other.commit()
        assert await (await client.execute("SELECT * FROM t")).fetchall() == []


async def test_an_untouched_database_is_kept(on_postgres):
    async with on_postgres() as bench:
        oid = "SELECT oid FROM pg_database WHERE datname = current_database()"
        first = await bench.rows(oid)
        await bench.trial()
        assert await bench.rows(oid) == first
        await (await bench.connect()).execute("SELECT 1")
        await bench.trial()
        assert await bench.rows(oid) != first


async def test_what_a_role_has_set_for_itself_ends_with_the_trial(on_postgres):
    """What the role had before chaoskit came, a list for example, is there again."""
    shown = (
        "SELECT current_setting('work_mem'), current_setting('search_path'), "
        "current_setting('synchronous_commit')"
    )
    async with on_postgres() as bench:
        real, role = await bench.real(), bench.service.server.role
        await real.execute(f'ALTER ROLE {role} SET search_path = a, "B c"')
        settings = RoleSettings(role)
        await settings.reset(real, "on")
        client = await bench.connect()
        before = await (await client.execute(shown)).fetchone()
        for where in ("", f"IN DATABASE {bench.service.server.database}"):
            for what in ("work_mem = '5MB'", "search_path = x"):
                await client.execute(f"ALTER ROLE current_user {where} SET {what}")
        await settings.reset(real, "off")
        after = await (await (await bench.connect()).execute(shown)).fetchone()
        assert after == (*before[:2], "off")
        assert before[1] == 'a, "B c"'


async def test_a_role_begins_each_trial_with_nothing_set(on_postgres):
    async with on_postgres() as bench:
        client = await bench.connect()
        before = await (await client.execute("SHOW work_mem")).fetchone()
        for where in ("", "IN DATABASE postgres"):
            sets = f"ALTER ROLE current_user {where} SET work_mem = '5MB'"
            await client.execute(sets)
        await bench.trial()
        client = await bench.connect()
        assert await (await client.execute("SHOW work_mem")).fetchone() == before
        assert await bench.rows(
            "SELECT setconfig FROM pg_db_role_setting s JOIN pg_roles r "
            f"ON r.oid = setrole WHERE rolname = '{bench.service.server.role}'"
        ) == [["synchronous_commit=on"]]


def test_a_table_without_rows_is_shown():
    table = Table("public", "t", ("a",), ("text",), ("a",))
    assert view_of(Snapshot(tables=(table,)))["tables"] == {"t": {}}
