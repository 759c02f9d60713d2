"""A PostgreSQL server of our own: found on this machine, started, and ended with us.

It lives in a folder of ours, listens on a unix socket there and nowhere else, and ends
when its parent does. The server refuses to run as root, so for root it runs as
``postgres`` or ``nobody``; that user cannot enter our folder by its path, and is given
the folder opened (``/proc/self/fd``). Nothing is synced to the disk: a process that is
killed loses nothing that it had written, and a machine that crashes takes the campaign
with it.
"""

import asyncio
import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from chaoskit.world.postgres.link import link
from chaoskit.world.postgres.programs import find_programs, unprivileged
from chaoskit.world.redis.link import Connected
from chaoskit.world.servers import MissingServer

DATA, LOG = "postgres", "postgres.log"
SUPERUSER, AGENT, PASSWORD = "chaoskit", "agent", "agent"
"""Roles of a server of our own; who reaches its socket is trusted."""
LOG_LINES = 5
START_SECONDS_MAX = 60.0
TRY_AGAIN_SECONDS = 0.005

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
_PR_SET_PDEATHSIG = 1


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
        self._process: subprocess.Popen[bytes] | None = None
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
        loop = asyncio.get_running_loop()
        address = f"{self._data}/.s.PGSQL.{self.port}"
        await loop.create_unix_connection(lambda: protocol, address)
        return protocol

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
            self._make_cluster()
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
            async with asyncio.timeout(START_SECONDS_MAX):
                await self._answers(self._process, program)
        except TimeoutError:
            await self.stop()
            raise self._failed(program, "does not answer") from None

    async def crash(self) -> None:
        """Kill every process of it at once, so that nobody can tidy up."""
        process, self._process, self._frozen = self._process, None, None
        assert process is not None, "start comes first"
        process.send_signal(signal.SIGSTOP)  # lest it starts another meanwhile
        watched = list(_open_all(psutil.Process(process.pid).children()))
        for each in watched:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(each, signal.SIGKILL)
        process.kill()
        process.wait()
        for each in watched:
            await _ended(each)

    async def stop(self) -> None:
        """End it: it has nothing to save."""
        if self._process is not None:
            self.thaw()
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
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

    def _make_cluster(self) -> None:
        program = self._programs_found / "initdb"
        options = ["-D", self._data, "-U", SUPERUSER, "--auth=trust", "--no-sync"]
        options += ["--encoding=UTF8", "--locale=C", "--no-instructions"]
        process = self._spawn([str(program), *options])
        if process.wait():
            raise self._failed(program, f"failed with code {process.returncode}")

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        user = self._user
        privileges: dict[str, Any] = {}
        if user is not None:
            privileges = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
        try:
            with self.log.open("ab") as log:
                return subprocess.Popen(
                    command,
                    cwd="/",
                    env=_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=(self._opened,),
                    preexec_fn=_ends_with(os.getpid()),
                    **privileges,
                )
        except OSError as problem:
            who = f" by {user.pw_name} (it does not run as root)" if user else ""
            raise MissingServer(
                f"{command[0]} cannot be run{who}: {problem}"
            ) from problem

    async def _answers(self, process: subprocess.Popen[bytes], program: Path) -> None:
        """Only trying tells whether it has come so far."""
        while True:
            with suppress(psycopg.OperationalError):
                await (await link(self.connection("postgres"))).close()
                return
            if process.poll() is not None:
                code = process.returncode
                self._process = None
                raise self._failed(program, f"ended at once, with exit code {code}")
            await asyncio.sleep(TRY_AGAIN_SECONDS)

    def _failed(self, program: Path, how: str) -> MissingServer:
        end = "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_LINES:])
        return MissingServer(f"{program} {how}. Its log, {self.log}, ends with:\n{end}")


def _environment() -> dict[str, str]:
    """Ours, with the campaign's tag, and without what would configure PostgreSQL."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_"))}
    return kept | {"LANG": "C"}


def _open_all(processes: Iterable[psutil.Process]) -> Iterable[int]:
    for process in processes:
        with suppress(ProcessLookupError):
            yield os.pidfd_open(process.pid)


async def _ended(pidfd: int) -> None:
    """Wait for the end of a process that may not be our child."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(pidfd, over.set)
    await over.wait()
    loop.remove_reader(pidfd)
    # Where orphans become ours, it is ours to bury.
    with suppress(ChildProcessError):
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
    os.close(pidfd)


def _ends_with(parent: int) -> Callable[[], None] | None:
    """What the child does first: ask to be stopped when its parent dies, prctl(2).

    SIGQUIT stops the server at once, with all its processes and all that it shares.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)  # looked up here: a forked child should do little

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask
