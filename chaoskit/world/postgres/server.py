"""The real PostgreSQL behind the relay: one that was given, or one of our own.

A server that was given lends us a database, which chaoskit makes and drops again as
the role in its URL; that role has to be allowed to. It is the agent's role too, but for
a superuser, who makes one for the agent. Several campaigns and workers can share the
server. What only its owner can do, stopping it, is not done to it.
"""

import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote

import psycopg

from chaoskit.world.postgres.link import Connection, link
from chaoskit.world.postgres.own import PASSWORD, OwnServer
from chaoskit.world.servers import DATABASE_URL_VARIABLE, MissingServer
from chaoskit.world.servers.connect import Connected, to_port, to_socket
from chaoskit.world.servers.url import Place, without_password

VARIABLE = DATABASE_URL_VARIABLE
"""The environment variable in which a user gives a server."""
PLACE = Place(
    VARIABLE,
    "PostgreSQL server",
    ("postgresql", "postgres"),
    "postgresql://user:password@host:port/database",
)
OLDEST = 14
PREFIX = "chaoskit_"
_NUMBERS = count(1)
_ENCRYPTED = ("require", "verify-ca", "verify-full")


class GivenServer:
    """A server that somebody else runs, at ``postgresql://user:password@host:port/db``.

    ``postgresql://user@/db?host=/folder`` is one with a unix socket in that folder.

    Raises:
        MissingServer: the URL is not one.
    """

    reserved_role = ""

    def __init__(self, url: str) -> None:
        self._parts = _split(url)
        self.shown = without_password(url)
        self._login = unquote(self._parts.username or "postgres")
        self._password = unquote(self._parts.password or "")
        self.role, self.password = self._login, self._password
        self.database = f"{PREFIX}{os.getpid()}_{next(_NUMBERS)}"
        self._held: Connection | None = None

    @property
    def dump_program(self) -> Path:
        """``pg_dump`` on PATH."""
        found = shutil.which("pg_dump")
        if found is None:
            raise MissingServer(
                f"there is no pg_dump on PATH, with which the state of {self.shown} is "
                "copied. Install one that is not older than the server, for example "
                "with `apt-get install postgresql-client`, or leave "
                f"{VARIABLE} unset: chaoskit then starts a server of its own"
            )
        return Path(found)

    def connection(self, database: str = "") -> dict[str, Any]:
        """How our own connections reach it, in words of libpq."""
        return {
            "host": _host(self._parts),
            "port": self._parts.port or 5432,
            "user": self._login,
            "password": self._password,
            "dbname": database or unquote(self._parts.path[1:]) or self._login,
        }

    async def connect(self, protocol: Connected) -> Connected:
        """Connect a client's stand-in."""
        where = self.connection()
        host, port = where["host"], where["port"]
        if host.startswith("/"):
            return await to_socket(f"{host}/.s.PGSQL.{port}", protocol)
        return await to_port(host, port, protocol)

    async def start(self) -> None:
        """Make sure that it is there and will do.

        Raises:
            MissingServer: it is not, or not for us.
        """
        try:
            self._held = await link(self.connection())
            await self._will_do(self._held)
            await self._drop_leftovers(self._held)
            if self.role != self._login:
                await self._held.execute(
                    f"CREATE ROLE {self.role} LOGIN PASSWORD '{self.password}'"
                )
        except psycopg.Error as problem:
            await self.stop()
            raise MissingServer(
                f"the PostgreSQL server at {self.shown} ({VARIABLE}) cannot be used: "
                f"{str(problem).strip()}. Start it, or unset {VARIABLE} for one of ours"
            ) from problem
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Leave it running; our database has been dropped."""
        if self._held is not None:
            with suppress(psycopg.Error):
                if self.role != self._login:
                    await self._held.execute(f"DROP ROLE IF EXISTS {self.role}")
            await self._held.close()
            self._held = None

    async def _will_do(self, ours: Connection) -> None:
        version = ours.info.server_version // 10000
        if version < OLDEST:
            raise MissingServer(
                f"the server at {self.shown} is PostgreSQL {version}; expected "
                f"{OLDEST} or newer"
            )
        may = await ours.execute(
            "SELECT rolcreatedb, rolsuper FROM pg_roles WHERE rolname = current_user"
        )
        creates, is_super = await may.fetchone() or (False, False)
        if not (creates or is_super):
            raise MissingServer(
                f"the role {self._login} may not make databases on the server at "
                f"{self.shown}, and chaoskit makes one for each of its processes. "
                f"Allow it with `ALTER ROLE {self._login} CREATEDB`, or leave "
                f"{VARIABLE} unset: chaoskit then starts a server of its own"
            )
        _ = self.dump_program
        if is_super:
            self.role, self.password = self.database, PASSWORD

    async def _drop_leftovers(self, ours: Connection) -> None:
        """Each process of ours holds a lock named like its database."""
        await ours.execute("SELECT pg_advisory_lock(hashtext(%s))", (self.database,))
        found = await ours.execute(
            "SELECT datname::text AS name FROM pg_database UNION "
            "SELECT rolname FROM pg_roles ORDER BY name"
        )
        for name in _ours(await found.fetchall()):
            locked = "SELECT pg_try_advisory_lock(hashtext(%s))"
            if await (await ours.execute(locked, (name,))).fetchone() == (True,):
                await ours.execute(f"DROP DATABASE IF EXISTS {name}".encode())
                await ours.execute(f"DROP ROLE IF EXISTS {name}".encode())
                await ours.execute("SELECT pg_advisory_unlock(hashtext(%s))", (name,))


def find_server(url: str | None, folder: Path) -> GivenServer | OwnServer:
    """The server at the URL, or one of our own that will live in the folder."""
    return GivenServer(url) if url else OwnServer(folder)


def _ours(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    return [name for (name,) in rows if re.fullmatch(rf"{PREFIX}\d+_\d+", name)]


def _split(url: str) -> SplitResult:
    parts = PLACE.split(url)
    if not _host(parts):
        raise PLACE.no_url(url)
    if parse_qs(parts.query).get("sslmode", [""])[-1] in _ENCRYPTED:
        raise MissingServer(
            f"{VARIABLE}: {without_password(url)} asks for an encrypted connection, "
            "which the relay cannot look into; expected a server, on this machine for "
            "example, that takes others (sslmode=disable)"
        )
    return parts


def _host(parts: SplitResult) -> str:
    return parts.hostname or parse_qs(parts.query).get("host", [""])[-1]
