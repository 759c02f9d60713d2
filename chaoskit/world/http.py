"""HTTP for the services: a server for each life, on sockets of that life alone.

A service hands over one function, from a whole request to a reply. `Dropped` closes
the connection without a word. A client that hangs up does not stop the function: a
message that is past the gate is applied, whoever still listens.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError
from pydantic import JsonValue

from chaoskit.gate import Dropped
from chaoskit.wire.json_text import compact
from chaoskit.world.listener import Listener


@dataclass(frozen=True)
class Request:
    """A request that has arrived whole. ``headers`` ignore case and may repeat."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def all(self, header: str) -> list[str]:
        """Every value of a header, by its name in lower case."""
        return [value for name, value in self.headers if name.lower() == header]


@dataclass(frozen=True)
class Reply:
    """A JSON answer."""

    body: JsonValue
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Awaitable[Reply]]


class HttpLives:
    """The servers of one service, one for each open life, all on one port.

    Bodies above ``body_bytes_max`` get the ``too_large`` reply. A handler that raises
    is a bug of ours and must not look like the agent's: the connection is cut, and the
    next call of a method here raises it again.
    """

    def __init__(self, body_bytes_max: int, too_large: Reply) -> None:
        self._limits = body_bytes_max, too_large
        self._bugs: list[Exception] = []
        self._listener: Listener | None = None
        self._open: dict[int, tuple[asyncio.Server, _LifeServer]] = {}

    async def start(self) -> int:
        """Take a port; returns its number."""
        self._listener = Listener()
        return self._listener.port

    async def open(self, life: int, handler: Handler) -> None:
        """Serve a life. Connections of others live on, but take no new ones."""
        assert self._listener is not None, "start comes first"
        self._report()
        for server, _ in self._open.values():
            server.close()
        served = _LifeServer(handler, self._bugs, *self._limits)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(served, sock=self._listener.renew())
        self._open[life] = server, served

    async def close(self, life: int) -> None:
        """Abort every connection of a life; handlers that run go on to their end."""
        if life in self._open:
            server, served = self._open.pop(life)
            server.close()
            served.abort()
        self._report()

    async def close_all(self) -> None:
        """Abort every connection of every life."""
        for life in tuple(self._open):
            await self.close(life)

    async def stop(self) -> None:
        """Close everything and give the port back."""
        try:
            await self.close_all()
        finally:
            if self._listener is not None:
                self._listener.close()

    def _report(self) -> None:
        if self._bugs:
            raise self._bugs.pop(0)


class _Noise(logging.Filter):
    """Keeps to itself that an agent, or what was left of it, did not speak HTTP."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError)


_log = logging.getLogger(__name__)
_log.addFilter(_Noise())


class _LifeServer(web.Server):
    """aiohttp's server, which knows its connections and can be cut off as a whole."""

    def __init__(
        self,
        handler: Handler,
        bugs: list[Exception],
        body_bytes_max: int,
        too_large: Reply,
    ) -> None:
        super().__init__(
            self._serve,
            request_factory=self._request,
            handler_cancellation=False,
            access_log=None,
            logger=_log,
        )
        self._handler = handler
        self._body_bytes_max = body_bytes_max
        self._too_large = too_large
        self._bugs = bugs
        self._over = False

    def abort(self) -> None:
        self._over = True
        for connection in self.connections:
            if connection.transport is not None:
                connection.transport.abort()

    def connection_made(
        self, handler: web.RequestHandler, transport: asyncio.Transport
    ) -> None:
        super().connection_made(handler, transport)
        if self._over:  # accepted in the last moment before the end
            # Not at once: aiohttp is still busy with setting the connection up.
            asyncio.get_running_loop().call_soon(transport.abort)

    def _request(self, *parts: object) -> web.BaseRequest:
        make: Callable[..., web.BaseRequest] = web.BaseRequest
        loop = asyncio.get_running_loop()
        return make(*parts, loop, client_max_size=self._body_bytes_max)

    async def _serve(self, request: web.BaseRequest) -> web.Response:
        try:
            return _written(await self._reply(request))
        except Dropped:
            return _cut(request)
        except Exception as error:
            self._bugs.append(error)
            return _cut(request)

    async def _reply(self, request: web.BaseRequest) -> Reply:
        if request.headers.get("Expect", "").lower() == "100-continue":
            _go_on(request)
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._too_large
        except Exception:
            raise Dropped from None  # it never became whole: no message at all
        return await self._handler(
            Request(
                request.method,
                request.path,
                tuple(request.query.items()),
                tuple(request.headers.items()),
                body,
            )
        )


def _go_on(request: web.BaseRequest) -> None:
    """Ask for the body of a client that waits to be asked (RFC 9110, 10.1.1)."""
    if request.transport is not None and request.version >= HttpVersion11:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def _written(reply: Reply) -> web.Response:
    return web.Response(
        text=compact(reply.body),
        status=reply.status,
        headers=reply.headers,
        content_type="application/json",
    )


def _cut(request: web.BaseRequest) -> web.Response:
    """Abort the connection; the response can no longer be written, and is not."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
