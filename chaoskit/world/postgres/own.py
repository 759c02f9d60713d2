"""A PostgreSQL server of our own: found on this machine, started, and ended with us.

It lives in a folder of ours, listens on a unix socket there and nowhere else, and ends
when its parent does. The server refuses to run as root, so for root it runs as
``postgres`` or ``nobody``; that user cannot enter our folder by its path, and is given
the folder opened (``/proc/self/fd``). Nothing is synced to the disk: a process that is
killed loses nothing that it had written, and a machine that crashes takes the campaign
with it.
"""

import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from chaoskit.world.postgres.link import link
from chaoskit.world.postgres.programs import find_programs, unprivileged
from chaoskit.world.servers import MissingServer
from chaoskit.world.servers.connect import Connected, to_socket
from chaoskit.world.servers.process import ServerProcess

DATA, LOG = "postgres", "postgres.log"
SUPERUSER, AGENT, PASSWORD = "chaoskit", "agent", "agent"
"""Roles of a server of our own; who reaches its socket is trusted."""
CLUSTER_SECONDS_MAX = 120.0
"""How long `initdb` may take."""
START_SECONDS_MAX = 60.0

SETTINGS: Mapping[str, object] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "32MB",
    "max_connections": 200,
    "dynamic_shared_memory_type": "mmap",  # leaves nothing in /dev/shm when killed
    # Nobody waits for the disk, as said above.
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": 0,
    "wal_buffers": "16MB",
    # What happens at its own times would make two equal runs differ.
    "autovacuum": "off",
    "bgwriter_lru_maxpages": 0,
    "checkpoint_timeout": "1d",
    "synchronize_seqscans": "off",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "fatal",
    "log_min_error_statement": "panic",
}


class OwnServer:
    """A server that we start, in a folder of ours; see the module's docstring."""

    role, password, reserved_role = AGENT, PASSWORD, SUPERUSER
    database = AGENT
    port = 5432
    """Part of the name of its socket; nothing listens there."""
    settings: Mapping[str, object] = SETTINGS

    def __init__(self, folder: Path, programs: Path | None = None) -> None:
        self._folder = folder
        self._programs = programs
        self._user = unprivileged()
        self._opened = -1
        self._process: ServerProcess | None = None
        self._frozen: int | None = None

    @property
    def log(self) -> Path:
        """What the server prints."""
        return self._folder / LOG

    @property
    def dump_program(self) -> Path:
        """The ``pg_dump`` that fits the server."""
        return self._programs_found / "pg_dump"

    def connection(self, database: str) -> dict[str, Any]:
        """How our own connections reach it, in words of libpq."""
        where = {"host": self._data, "port": self.port}
        return {**where, "user": SUPERUSER, "dbname": database}

    async def connect(self, protocol: Connected) -> Connected:
        """Connect a client's stand-in."""
        return await to_socket(f"{self._data}/.s.PGSQL.{self.port}", protocol)

    async def start(self) -> None:
        """Make a database cluster, and start a server on it.

        Raises:
            MissingServer: none is installed, or it ended instead of answering.
        """
        self._programs = self._programs_found
        data = self._folder / DATA
        if data.exists():
            raise MissingServer(f"{data} is there already; expected no such folder")
        data.mkdir(parents=True, mode=0o700)
        if self._user is not None:
            os.chown(data, self._user.pw_uid, self._user.pw_gid)
        self._opened = os.open(data, os.O_RDONLY | os.O_DIRECTORY)
        try:
            await self._make_cluster()
            await self.start_again()
            async with await link(self.connection("postgres")) as ours:
                await ours.execute(f"CREATE ROLE {AGENT} LOGIN PASSWORD '{PASSWORD}'")
        except BaseException:
            await self.stop()
            raise

    async def start_again(self) -> None:
        """Start the server on what there is, and wait until it has recovered."""
        program = self._programs_found / "postgres"
        options = [f"--{k}={v}" for k, v in self.settings.items()]
        options += [f"--port={self.port}"]
        options += ["-D", self._data, f"--unix_socket_directories={self._data}"]
        self._process = self._spawn([str(program), *options])
        try:
            await self._process.answer(self._answers, START_SECONDS_MAX)
        except BaseException:
            await self.stop()
            raise

    async def crash(self) -> None:
        """Kill every process of it at once, so that nobody can tidy up."""
        process, self._process, self._frozen = self._process, None, None
        assert process is not None, "start comes first"
        await process.crash()

    async def stop(self) -> None:
        """End it: it has nothing to save."""
        if self._process is not None:
            self.thaw()
            await self._process.end()
            self._process = None
        if self._opened >= 0:
            os.close(self._opened)
            self._opened = -1
        shutil.rmtree(self._folder / DATA, ignore_errors=True)

    def freeze(self, writer: int) -> None:
        """Stop the process that writes, every now and then, what nobody waits for.

        From here on a commit that does not wait for the disk is lost in a crash, where
        otherwise that would depend on the moment.
        """
        os.kill(writer, signal.SIGSTOP)
        self._frozen = writer

    def thaw(self) -> None:
        """Let it go on."""
        if self._frozen is not None:
            with suppress(ProcessLookupError):
                os.kill(self._frozen, signal.SIGCONT)
            self._frozen = None

    @property
    def _data(self) -> str:
        """The folder, for us and for the server alike, whatever its path."""
        return f"/proc/self/fd/{self._opened}"

    @property
    def _programs_found(self) -> Path:
        return self._programs or find_programs()

    async def _make_cluster(self) -> None:
        program = self._programs_found / "initdb"
        options = ["-D", self._data, "-U", SUPERUSER, "--auth=trust", "--no-sync"]
        options += ["--encoding=UTF8", "--locale=C", "--no-instructions"]
        made = self._spawn([str(program), *options])
        await made.succeed(CLUSTER_SECONDS_MAX)

    def _spawn(self, command: list[str]) -> ServerProcess:
        user = self._user
        how: dict[str, Any] = {"cwd": "/", "env": _environment()}
        if user is not None:
            how |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
        # SIGQUIT stops it at once, with all its processes and all that it shares.
        how |= {"last_signal": signal.SIGQUIT, "pass_fds": (self._opened,)}
        try:
            return ServerProcess(command, self.log, **how)
        except OSError as problem:
            who = f" by {user.pw_name} (it does not run as root)" if user else ""
            raise MissingServer(
                f"{command[0]} cannot be run{who}: {problem}"
            ) from problem

    async def _answers(self) -> bool | None:
        """True, or None while it does not."""
        with suppress(psycopg.OperationalError):
            await (await link(self.connection("postgres"))).close()
            return True
        return None


def _environment() -> dict[str, str]:
    """Ours, with the campaign's tag, and without what would configure PostgreSQL."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_"))}
    return kept | {"LANG": "C"}
