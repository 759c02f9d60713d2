"""The settings of the agent's role: they outlive its database, so they are put back.

The role may be a user's own, with settings of the user's: what was there when we came
is there again in each trial, and nothing else but the durability.
"""

from psycopg.sql import SQL, Composable, Identifier

from chaoskit.model.scenario import PostgresDurability
from chaoskit.world.postgres.link import Connection

_SETTINGS = """
    SELECT coalesce(d.datname::text, ''), split_part(c, '=', 1),
        substr(c, strpos(c, '=') + 1)
    FROM pg_catalog.pg_db_role_setting s
    JOIN pg_catalog.pg_roles r ON r.oid = s.setrole
    LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase,
    unnest(s.setconfig) c WHERE r.rolname = %s ORDER BY 1, 2"""

Setting = tuple[str, str, str]
"""The database (nothing: all of them), the name and the value."""


class RoleSettings:
    """What ``ALTER ROLE ... SET`` has set for a role, kept as it was found first."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._found: list[Setting] | None = None

    async def reset(self, ours: Connection, durability: PostgresDurability) -> None:
        """Put all back, with this durability, over a connection that is open now."""
        now = await self._read(ours)
        if self._found is None:
            self._found = now
        async with ours.transaction():
            for database in sorted({database for database, _, _ in now}):
                await self._alter(ours, database, SQL("RESET ALL"))
            left = await self._read(ours)  # what only a superuser may change
            for setting in self._found:
                if setting not in left:
                    await self._set(ours, *setting)
            await self._set(ours, "", "synchronous_commit", durability)

    async def _read(self, ours: Connection) -> list[Setting]:
        return await (await ours.execute(_SETTINGS, (self._role,))).fetchall()

    async def _set(
        self, ours: Connection, database: str, name: str, value: str
    ) -> None:
        """A value that is a list cannot be told as SQL; the session's own can."""
        told = "SELECT pg_catalog.set_config(%s, %s, true)"
        await ours.execute(told, (name, value))
        words = SQL(".").join(map(Identifier, name.split(".")))
        await self._alter(ours, database, SQL("SET {} FROM CURRENT").format(words))

    async def _alter(self, ours: Connection, database: str, what: Composable) -> None:
        where: Composable = SQL("")
        if database:
            where = SQL("IN DATABASE {}").format(Identifier(database))
        alter = SQL("ALTER ROLE {} {} {}").format(Identifier(self._role), where, what)
        await ours.execute(alter)
