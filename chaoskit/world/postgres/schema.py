"""The schema of a database as text, as ``pg_dump`` writes it.

In two parts: what has to be there before the rows, and what can only be after them
(indexes, keys, triggers).
"""

import asyncio
import os
import re
from pathlib import Path
from typing import Any, Protocol

from chaoskit.world.postgres.dump import SETTINGS
from chaoskit.world.postgres.link import LOCK_SECONDS_MAX
from chaoskit.world.servers import MissingServer

_FIRST = "\n--\n-- Name: "
_END = "\n--\n-- PostgreSQL database dump complete"


class Server(Protocol):
    """What the state needs to know of the server."""

    role: str
    database: str

    @property
    def dump_program(self) -> Path:
        """``pg_dump``."""

    def connection(self, database: str) -> dict[str, Any]:
        """How our own connections reach it, in words of libpq."""


async def dumped(server: Server, section: str) -> str:
    """A section of the schema of the agent's database: pre-data or post-data.

    Raises:
        MissingServer: ``pg_dump`` fails.
    """
    program = server.dump_program
    where = server.connection(server.database)
    command = [str(program), f"--section={section}", "--no-owner", "--no-password"]
    command.append(f"--lock-wait-timeout={LOCK_SECONDS_MAX}s")
    command += [f"--{k}={where[k]}" for k in ("host", "port") if k in where]
    command += [f"--username={where['user']}", f"--dbname={where['dbname']}"]
    process = await asyncio.create_subprocess_exec(
        *command,
        env=_environment(where),
        pass_fds=_opened_in(str(where.get("host"))),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, problem = await process.communicate()
    if process.returncode:
        said = problem.decode(errors="replace").strip()
        raise MissingServer(f"{program} cannot copy the agent's schema: {said}")
    return _bare(told.decode())


def _environment(where: dict[str, Any]) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    return kept | {"PGPASSWORD": str(where.get("password") or ""), "LC_ALL": "C"}


def _opened_in(host: str) -> tuple[int, ...]:
    found = re.fullmatch(r"/proc/self/fd/(\d+)", host)
    return (int(found[1]),) if found else ()


def _bare(dump: str) -> str:
    """What makes the objects, without the dump's own head and end.

    Those hold commands of psql, and the name of the server's version. What is between
    stays as it is, since a function's body may look like anything.
    """
    begin = dump.find(_FIRST)
    if begin < 0:
        return ""
    return "\n".join((*SETTINGS, dump[begin : dump.rindex(_END)].strip()))
