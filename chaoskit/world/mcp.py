"""The `mcp` service: the same tools over the Model Context Protocol.

``CHAOSKIT_MCP_URL`` is an endpoint of streamable HTTP for every released revision. A
`tools/call` is the operation ``charge_card``, its key the call's first argument in the
script's order; the idempotency key is ``_meta.idempotency_key``. Reading the resource
``effects:///charge_card?order=o-1`` looks up what a queryable tool has done, as
``GET $CHAOSKIT_TOOLS_URL/charge_card?order=o-1`` does: the operation ``charge_card?``.
Both have the edges ``before`` and ``after``, and ``part:1``, the middle of the reply.
Handshake, discovery, lists and pings cross nothing, nor does what is refused.

The answer is ``{"result": ...}`` as structured content, and its JSON as text. It is one
JSON object; a call that asks for progress is answered by a stream of two events, and
its ``part:1`` is between them. There are no sessions: every request stands for itself,
GET and DELETE are answered with 405. In a batch each call crosses by itself, in order,
and ``part:1`` of the last of them cuts the reply.

The faults: ``error(-32603)`` is a JSON-RPC error, ``error(isError)`` a result that
says the tool failed, ``error(429)`` and ``error(503)`` come as from a gateway before
the server, with ``Retry-After``. After a ``duplicate`` the client is sent the second
answer.
"""

from collections.abc import Mapping
from typing import ClassVar

from chaoskit.gate import Gate
from chaoskit.model.scenario import Scenario
from chaoskit.world.book import Book
from chaoskit.world.http import Answer, HttpLives, Request
from chaoskit.world.listener import LOOPBACK
from chaoskit.world.tools_errors import error

BODY_BYTES_MAX = 2**20
PATH = "/mcp"


class Mcp:
    """See the module's docstring. One per worker process; `Tools` keeps its book."""

    name = "mcp"
    variables: ClassVar[Mapping[str, str]] = {
        "CHAOSKIT_MCP_URL": "the same tools over MCP (streamable HTTP)"
    }

    def __init__(self, book: Book | None = None) -> None:
        message = f"the body has more than {BODY_BYTES_MAX} bytes"
        self._http = HttpLives(BODY_BYTES_MAX, error(413, "too_large", message))
        self._port = 0
        self._book = book or Book()
        self._scenario: Scenario | None = None

    async def start(self) -> None:
        """Take a port for the campaign."""
        self._port = await self._http.start()

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """Serve the tools of this scenario."""
        await self._http.close_all()
        self._book.begin(gate, scenario)
        self._scenario = scenario

    async def open(self, life: int) -> dict[str, str]:
        """Fresh sockets for a life, and the variable that names them."""
        book, scenario = self._book, self._scenario
        assert scenario is not None, "reset comes first"

        async def handle(request: Request) -> Answer:
            # Slow to import, and most worlds have nobody who speaks MCP.
            from chaoskit.world.mcp_server import Server

            return await Server(book, scenario, life).serve(request)

        await self._http.open(life, handle, book.gate)
        return {"CHAOSKIT_MCP_URL": f"http://{LOOPBACK}:{self._port}{PATH}"}

    async def close(self, life: int) -> None:
        """Drop every connection of a life at once."""
        await self._http.close(life)

    async def stop(self) -> None:
        """Give the port back."""
        await self._http.stop()
