"""The server of one life: aiohttp's, with a gate in the replies."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError

from chaoskit.gate import Crossing, Dropped, Failed, Gate
from chaoskit.wire.json_text import compact
from chaoskit.wire.pieces import halves
from chaoskit.world.http.message import Answer, Handler, Reply, Request, Streamed
from chaoskit.world.listener import reset

JSON = "application/json"
_WITHOUT_BODY = (202, 204)


class _Noise(logging.Filter):
    """Keeps to itself that an agent, or what was left of it, did not speak HTTP."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError)


_log = logging.getLogger(__name__)
_log.addFilter(_Noise())


class LifeServer(web.Server):
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
        """Cut every connection, and those that still come."""
        self._over = True
        for connection in self.connections:
            reset(connection.transport)

    def connection_made(
        self, handler: web.RequestHandler, transport: asyncio.Transport
    ) -> None:
        """aiohttp's part of the deal."""
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
        with suppress(ConnectionError):
            await response.prepare(request)
            await self._gate.deliver(crossing, halves(body), response.write)
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
