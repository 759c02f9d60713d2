"""The content of a PostgreSQL database: read, put back, and shown as JSON.

A `Snapshot` is text that any server can take: the schema as ``pg_dump`` writes it, in a
part before and a part after the rows; each table's rows as COPY gives them, in the
table's own order; where each sequence stands. Left out are large objects, and roles and
settings, which are not the agent's to change. What is not committed is not in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from psycopg import sql

from chaoskit.world.postgres.link import Connection

_NOT_OURS = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
_NO_EXTENSION = (
    "NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = c.oid "
    "AND d.classid = 'pg_catalog.pg_class'::regclass AND d.deptype = 'e')"
)
_IS_LOCKED = """EXISTS (
    SELECT FROM pg_catalog.pg_locks l WHERE l.relation = c.oid AND l.granted
        AND l.mode = 'AccessExclusiveLock' AND l.pid <> pg_backend_pid()
        AND l.database = (SELECT oid FROM pg_catalog.pg_database
            WHERE datname = current_database()))"""
_TABLES = f"""
    SELECT n.nspname, c.relname,
        array(
            SELECT a.attname::text FROM pg_catalog.pg_attribute a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                AND a.attgenerated = '' ORDER BY a.attnum),
        array(
            SELECT a.atttypid::regtype::text FROM pg_catalog.pg_attribute a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                AND a.attgenerated = '' ORDER BY a.attnum),
        array(
            SELECT a.attname::text FROM pg_catalog.pg_index i
            CROSS JOIN unnest(i.indkey) WITH ORDINALITY k (number, place)
            JOIN pg_catalog.pg_attribute a
                ON a.attrelid = c.oid AND a.attnum = k.number
            WHERE i.indrelid = c.oid AND i.indisprimary ORDER BY k.place),
        {_IS_LOCKED}
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND c.relnatts > 0
    AND {_NOT_OURS} AND {_NO_EXTENSION}
    ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"
"""
_SEQUENCES = f"""
    SELECT n.nspname, c.relname, {_IS_LOCKED}
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'S' AND c.relpersistence <> 't'
    AND {_NOT_OURS} AND {_NO_EXTENSION}
    ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"
"""
_IN, _OUT = sql.SQL("FROM STDIN"), sql.SQL("TO STDOUT")

SETTINGS = ("SET check_function_bodies = false;", "SET search_path = '';")
"""How a schema begins, so that it means the same everywhere."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table; ``rows`` as COPY writes them, ``identity`` its primary key."""

    schema: str
    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    identity: tuple[str, ...]
    rows: bytes = b""

    @property
    def shown(self) -> str:
        """Its name for people."""
        return self.name if self.schema == "public" else f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Sequence:
    """One sequence: the last value that it gave, or (not ``called``) gives next."""

    schema: str
    name: str
    last: int
    called: bool


Known = Mapping[tuple[str, str], Table | Sequence]
"""What is remembered of a database, by schema and name: they share their names."""


@dataclass(frozen=True)
class Snapshot:
    """Everything that the next life could find in the database."""

    before_rows: str = ""
    after_rows: str = ""
    tables: tuple[Table, ...] = ()
    sequences: tuple[Sequence, ...] = ()


async def read_content(
    ours: Connection, known: Known
) -> tuple[tuple[Table, ...], tuple[Sequence, ...]]:
    """Tables and sequences, as of one moment.

    ``known`` is what to take from there where somebody keeps us from reading.
    """
    async with ours.transaction():
        await ours.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        found = await (await ours.execute(_TABLES)).fetchall()
        tables = []
        for schema, name, columns, types, identity, is_locked in found:
            remembered = known.get((schema, name))
            if is_locked and isinstance(remembered, Table):
                tables.append(remembered)
                continue
            shape = (tuple(columns), tuple(types), tuple(identity))
            tables.append(await _copied(ours, Table(schema, name, *shape)))
        return tuple(tables), await _sequences(ours, known)


async def put_rows(ours: Connection, snapshot: Snapshot) -> None:
    """Fill empty tables, and set the sequences."""
    for table in snapshot.tables:
        if not table.rows:
            continue
        async with ours.cursor().copy(_copy(table, _IN)) as copy:
            await copy.write(table.rows)
    for each in snapshot.sequences:
        name = sql.Identifier(each.schema, each.name).as_string(None)
        setting = (name, each.last, each.called)
        await ours.execute("SELECT pg_catalog.setval(%s::regclass, %s, %s)", setting)


def truncate(snapshot: Snapshot) -> sql.Composed:
    """Empties all tables of a snapshot."""
    names = [sql.Identifier(table.schema, table.name) for table in snapshot.tables]
    return sql.SQL("TRUNCATE {}").format(sql.SQL(", ").join(names))


async def _copied(ours: Connection, table: Table) -> Table:
    async with ours.cursor().copy(_copy(table, _OUT)) as copy:
        rows = b"".join([bytes(piece) async for piece in copy])
    return replace(table, rows=rows)


def _copy(table: Table, direction: sql.SQL) -> sql.Composed:
    name = sql.Identifier(table.schema, table.name)
    columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
    return sql.SQL("COPY {} ({}) {}").format(name, columns, direction)


async def _sequences(ours: Connection, known: Known) -> tuple[Sequence, ...]:
    found = await (await ours.execute(_SEQUENCES)).fetchall()
    remembered = {
        (schema, name): each
        for schema, name, is_locked in found
        if is_locked and isinstance(each := known.get((schema, name)), Sequence)
    }
    names = [(schema, name) for schema, name, _ in found]
    read = await _read(ours, [name for name in names if name not in remembered])
    return tuple({**remembered, **read}[name] for name in names)


async def _read(
    ours: Connection, names: list[tuple[str, str]]
) -> dict[tuple[str, str], Sequence]:
    if not names:
        return {}
    one = sql.SQL("SELECT {}::int, last_value, is_called FROM {}")
    each = (one.format(n, sql.Identifier(*name)) for n, name in enumerate(names))
    told = await ours.execute(sql.SQL(" UNION ALL ").join(each))
    values = sorted(await told.fetchall())
    return {
        name: Sequence(*name, last, called)
        for name, (_, last, called) in zip(names, values, strict=True)
    }
