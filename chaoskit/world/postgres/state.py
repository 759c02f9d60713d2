"""The state of the agent's database: made afresh, copied, put back, and looked at."""

from pydantic import JsonValue

from chaoskit.model.scenario import PostgresDurability
from chaoskit.world.postgres.dump import (
    Sequence,
    Snapshot,
    Table,
    put_rows,
    read_content,
    truncate,
)
from chaoskit.world.postgres.link import Connection, link
from chaoskit.world.postgres.role import RoleSettings
from chaoskit.world.postgres.schema import Server, dumped
from chaoskit.world.postgres.view import view

SCHEMAS_KEPT_MAX = 64
"""So many schemas are remembered, since asking for one takes a tenth of a second."""

_ROWS = " UNION ALL ".join(
    f"SELECT '{letter}' || {key} || ' ' || xmin FROM pg_catalog.{table}{where}"
    for letter, table, key, where in (
        ("c", "pg_class", "oid", " WHERE oid >= 16384 AND relpersistence <> 't'"),
        ("a", "pg_attribute", "attrelid || ' ' || attnum", " WHERE attrelid >= 16384"),
        ("d", "pg_attrdef", "oid", ""),
        ("i", "pg_index", "indexrelid", " WHERE indexrelid >= 16384"),
        ("k", "pg_constraint", "oid", " WHERE oid >= 16384"),
        ("p", "pg_proc", "oid", " WHERE oid >= 16384"),
        ("t", "pg_type", "oid", " WHERE oid >= 16384"),
        ("e", "pg_enum", "oid", ""),
        ("g", "pg_trigger", "oid", ""),
        ("r", "pg_rewrite", "oid", " WHERE oid >= 16384"),
        ("n", "pg_namespace", "oid", ""),
        ("l", "pg_policy", "oid", ""),
        ("x", "pg_extension", "oid", ""),
        ("s", "pg_sequence", "seqrelid", ""),
        ("m", "pg_description", "objoid || ' ' || objsubid", " WHERE objoid >= 16384"),
        ("f", "pg_default_acl", "oid", ""),
    )
)
_FINGERPRINT = f"""SELECT md5(string_agg(row, ',' ORDER BY row COLLATE "C"))
    FROM ({_ROWS}) AS rows (row)"""
_WRITERS = """
    SELECT DISTINCT p.proname::text FROM pg_catalog.pg_proc p WHERE p.oid >= 16384
    AND p.provolatile = 'v' AND p.prokind IN ('f', 'w')
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = p.oid
        AND d.classid = 'pg_catalog.pg_proc'::regclass AND d.deptype = 'e')"""
_IN_TRANSACTIONS = """
    SELECT pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND xact_start IS NOT NULL AND state <> 'idle'"""


class PostgresState:
    """The state of the database that the agent is given, which is ours to drop."""

    def __init__(self, server: Server, ours: Connection) -> None:
        self._server = server
        self.admin = ours
        self._settings = RoleSettings(server.role)
        self._inside: Connection | None = None
        self._schemas: dict[str, tuple[str, str]] = {}
        self._known: dict[tuple[str, str], Table | Sequence] = {}
        self._durability: PostgresDurability | None = None
        self._is_fresh = False

    async def reset(self, durability: PostgresDurability) -> None:
        """A new, empty database in place of the one before, a role as it was."""
        await self.leave()
        self._known.clear()
        if durability != self._durability or not self._is_fresh:
            await self._settings.reset(self.admin, durability)
            self._durability = durability
        if not self._is_fresh:
            await self.drop()
            await self.admin.execute(
                f"CREATE DATABASE {self._server.database} OWNER {self._server.role} "
                "TEMPLATE template0"
            )
            self._is_fresh = True

    def touched(self) -> None:
        """Somebody has connected to the database."""
        self._is_fresh = False

    async def drop(self) -> None:
        """Drop the database, whoever is in it."""
        name = self._server.database
        await self.admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    async def leave(self) -> None:
        """Close our connection to the database."""
        if self._inside is not None:
            await self._inside.close()
            self._inside = None

    async def snapshot(self) -> Snapshot:
        """All of it that is committed."""
        ours = await self._entered()
        schema = await self._schema(ours)
        tables, sequences = await read_content(ours, self._known)
        return Snapshot(*schema, tables, sequences)

    async def restore(self, snapshot: Snapshot) -> None:
        """Bring the database, whatever is in it, to an earlier state."""
        ours = await self._entered()
        await ours.execute(_IN_TRANSACTIONS)
        now = await self._schema(ours)
        async with ours.transaction():
            same = now == (snapshot.before_rows, snapshot.after_rows)
            if same and await self._may_mute_triggers(ours):
                await ours.execute("SET LOCAL session_replication_role = replica")
                if snapshot.tables:
                    await ours.execute(truncate(snapshot))
                await put_rows(ours, snapshot)
            else:
                await self._build(ours, snapshot, empty=now == ("", ""))
        self.touched()

    async def view(self) -> JsonValue:
        """All of it that is committed, as JSON; see `view`."""
        return view(await self.snapshot())

    async def writers(self) -> frozenset[str]:
        """The functions that somebody made here and that may write."""
        ours = await self._entered()
        return frozenset(
            name for (name,) in await (await ours.execute(_WRITERS)).fetchall()
        )

    async def keep(self) -> None:
        """Remember what is there, as somebody may lock it against our reading."""
        now = await self.snapshot()
        self._known |= {(each.schema, each.name): each for each in now.tables}
        self._known |= {(each.schema, each.name): each for each in now.sequences}

    async def _build(
        self, ours: Connection, snapshot: Snapshot, *, empty: bool
    ) -> None:
        if not empty:
            await ours.execute(f"DROP OWNED BY {self._server.role}")
        await ours.execute(f"SET LOCAL ROLE {self._server.role}")
        if snapshot.before_rows:
            await ours.execute(snapshot.before_rows.encode())
        await put_rows(ours, snapshot)
        if snapshot.after_rows:
            await ours.execute(snapshot.after_rows.encode())
        await ours.execute("SET search_path TO DEFAULT")

    async def _may_mute_triggers(self, ours: Connection) -> bool:
        """Only a superuser may; others make the tables anew."""
        told = await ours.execute("SHOW is_superuser")
        return await told.fetchone() == ("on",)

    async def _schema(self, ours: Connection) -> tuple[str, str]:
        row = await (await ours.execute(_FINGERPRINT)).fetchone()
        assert row is not None
        if row[0] not in self._schemas:
            if len(self._schemas) >= SCHEMAS_KEPT_MAX:
                self._schemas.clear()
            self._schemas[row[0]] = (
                await dumped(self._server, "pre-data"),
                await dumped(self._server, "post-data"),
            )
        return self._schemas[row[0]]

    async def _entered(self) -> Connection:
        if self._inside is None or self._inside.closed:
            where = self._server.connection(self._server.database)
            self._inside = await link(where)
        return self._inside
