"""HTTP for the services: a server for each life, on sockets of that life alone.

A service hands over one function, from a whole request to a reply. `Dropped` resets
the connection without a word; a reply that knows its crossing can be cut inside. A
client that hangs up does not stop the function: a message that is past the gate is
applied, whoever still listens.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError
from pydantic import JsonValue

from chaoskit.gate import Crossing, Dropped, Failed, Gate
from chaoskit.model.schedule import Fault
from chaoskit.wire.json_text import compact
from chaoskit.world.listener import LifePort, reset

JSON = "application/json"
_WITHOUT_BODY = (202, 204)

JSON = "application/json"


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
    """A JSON answer; with its ``crossing`` it can be cut in its middle."""

    body: JsonValue
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    crossing: Crossing | None = None


@dataclass(frozen=True)
class Streamed:
    """An answer in pieces, each sent whole.

    ``failure`` writes the piece that ends it where a fault says so.
    """

    pieces: tuple[bytes, ...]
    crossing: Crossing
    failure: Callable[[Fault], bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "text/event-stream"


Answer = Reply | Streamed
Handler = Callable[[Request], Awaitable[Answer]]


class HttpLives:
    """The servers of one service, one for each open life, all on one port.

    Bodies above ``body_bytes_max`` get the ``too_large`` reply. A handler that raises
    is a bug of ours and must not look like the agent's: the connection is cut, and the
    next call of a method here raises it again.
    """

    def __init__(self, body_bytes_max: int, too_large: Reply) -> None:
        self._limits = body_bytes_max, too_large
        self._bugs: list[Exception] = []
        self._port: LifePort | None = None
        self._open: dict[int, _LifeServer] = {}

    async def start(self) -> int:
        """Take a port; returns its number."""
        self._port = LifePort()
        return self._port.port

    async def open(self, life: int, handler: Handler, gate: Gate) -> None:
        """Serve a life, beside those that are open."""
        assert self._port is not None, "start comes first"
        self._report()
        served = _LifeServer(handler, gate, self._bugs, *self._limits)
        await self._port.open(life, served, gate.whose)
        self._open[life] = served

    async def close(self, life: int) -> None:
        """Abort every connection of a life; handlers that run go on to their end."""
        if self._port is not None and life in self._open:
            self._port.close(life)
            self._open.pop(life).abort()
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
            if self._port is not None:
                self._port.stop()

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
        gate: Gate,
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
        self._gate = gate
        self._body_bytes_max = body_bytes_max
        self._too_large = too_large
        self._bugs = bugs
        self._over = False

    def abort(self) -> None:
        self._over = True
        for connection in self.connections:
            reset(connection.transport)

    def connection_made(
        self, handler: web.RequestHandler, transport: asyncio.Transport
    ) -> None:
        super().connection_made(handler, transport)
        if self._over:  # accepted in the last moment before the end
            # Not at once: aiohttp is still busy with setting the connection up.
            asyncio.get_running_loop().call_soon(reset, transport)

    def _request(self, *parts: object) -> web.BaseRequest:
        make: Callable[..., web.BaseRequest] = web.BaseRequest
        loop = asyncio.get_running_loop()
        return make(*parts, loop, client_max_size=self._body_bytes_max)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._send(request, await self._reply(request))
        except (Dropped, Failed):  # inside a whole reply there is no place for an error
            return _cut(request)
        except Exception as error:
            self._bugs.append(error)
            return _cut(request)

    async def _send(
        self, request: web.BaseRequest, answer: Answer
    ) -> web.StreamResponse:
        if isinstance(answer, Streamed):
            return await self._streamed(request, answer)
        if answer.crossing is None or not self._gate.is_cut(answer.crossing):
            return _written(answer)
        return await self._halves(request, answer, answer.crossing)

    async def _streamed(
        self, request: web.BaseRequest, answer: Streamed
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=answer.headers)
        response.content_type = answer.content_type
        try:
            await response.prepare(request)
            await self._gate.deliver(answer.crossing, answer.pieces, response.write)
        except Failed as failed:
            with suppress(ConnectionError):
                await response.write(answer.failure(failed.fault))
        except ConnectionError:
            pass  # nobody listens any more
        return response

    async def _halves(
        self, request: web.BaseRequest, answer: Reply, crossing: Crossing
    ) -> web.StreamResponse:
        """A reply that is not streamed can be cut in its middle."""
        body = compact(answer.body).encode()
        response = web.StreamResponse(status=answer.status, headers=answer.headers)
        response.content_type, response.content_length = JSON, len(body)
        middle = len(body) // 2
        with suppress(ConnectionError):
            await response.prepare(request)
            pieces = (body[:middle], body[middle:])
            await self._gate.deliver(crossing, pieces, response.write)
        return response

    async def _reply(self, request: web.BaseRequest) -> Answer:
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
    if reply.status in _WITHOUT_BODY:
        return web.Response(status=reply.status, headers=reply.headers)
    return web.Response(
        text=compact(reply.body),
        status=reply.status,
        headers=reply.headers,
        content_type=JSON,
    )


def _cut(request: web.BaseRequest) -> web.Response:
    """Reset the connection; the response can no longer be written, and is not."""
    reset(request.transport)
    return web.Response()
