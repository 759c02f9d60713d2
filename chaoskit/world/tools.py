"""The `tools` service: effects over HTTP.

``POST $CHAOSKIT_TOOLS_URL/charge_card`` with a JSON object does the effect and answers
``{"result": ...}``: the operation ``charge_card``, its key the call's first argument in
the script's order. ``GET $CHAOSKIT_TOOLS_URL/charge_card?order=o-1`` looks up what a
queryable tool has done: the operation ``charge_card?``. Both have the edges ``before``
and ``after``, and ``part:1``, the middle of the reply. A request that is no call of a
declared tool is answered with an error and crosses nothing; one of a tool that is not
there is on record all the same.

The look-up answers ``{"effects": [{"args": ..., "result": ..., "idempotency_key":
...}]}``, oldest first: the effects whose arguments equal every parameter of the query,
compared as text (``cents=42000`` finds 42000). A parameter that is no argument of an
effect matches none. For tools that are not queryable the answer is 404. It also
answers for queryable tools that are called by mail (see `smtp`).

The faults ``error(429)``, ``error(500)``, ``error(503)`` and ``error(504)`` are HTTP
answers, 429 and 503 with ``Retry-After``. After a ``duplicate`` the client is sent the
second answer, as by a proxy that lost the first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pydantic import JsonValue

from chaoskit.gate import Failed, Gate
from chaoskit.model.scenario import Scenario, ToolClass, Via
from chaoskit.wire.json_text import parse
from chaoskit.world.book import Book, Call
from chaoskit.world.http import HttpLives, Reply, Request
from chaoskit.world.ledger import Effect, key_flaw
from chaoskit.world.listener import LOOPBACK
from chaoskit.world.tools_errors import error, failure

BODY_BYTES_MAX = 2**20
PREFIX = "/tools/"


class Tools:
    """See the module's docstring. One per worker process; it answers for the book."""

    name = "tools"
    variables: ClassVar[Mapping[str, str]] = {
        "CHAOSKIT_TOOLS_URL": "`POST $URL/TOOL` does an effect, `GET` looks them up"
    }

    def __init__(self, book: Book | None = None) -> None:
        message = f"the body has more than {BODY_BYTES_MAX} bytes"
        self._http = HttpLives(BODY_BYTES_MAX, error(413, "too_large", message))
        self._port = 0
        self._book = book or Book()

    async def start(self) -> None:
        """Take a port for the campaign."""
        self._port = await self._http.start()

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """Begin a new ledger."""
        await self._http.close_all()
        self._book.begin(gate, scenario)

    async def open(self, life: int) -> dict[str, str]:
        """Fresh sockets for a life, and the variable that names them."""
        counter = _Counter(self._book)

        async def handle(request: Request) -> Reply:
            return await counter.serve(life, request)

        await self._http.open(life, handle, self._book.gate)
        base = PREFIX.rstrip("/")
        return {"CHAOSKIT_TOOLS_URL": f"http://{LOOPBACK}:{self._port}{base}"}

    async def close(self, life: int) -> None:
        """Drop every connection of a life at once."""
        await self._http.close(life)

    async def snapshot(self) -> tuple[Effect, ...]:
        """Every effect so far."""
        return self._book.ledger.effects

    async def restore(self, snapshot: object) -> None:
        """Take up an earlier ledger."""
        assert isinstance(snapshot, tuple)
        self._book.ledger.effects = snapshot

    async def view(self) -> JsonValue:
        """Every effect so far, by tool."""
        return self._book.ledger.view()

    async def stop(self) -> None:
        """Give the port back."""
        await self._http.stop()


class _Refused(Exception):
    def __init__(self, reply: Reply) -> None:
        self.reply = reply


@dataclass(frozen=True)
class _Counter:
    """Where calls of one trial are handed in, each from one of its lives."""

    book: Book

    async def serve(self, life: int, request: Request) -> Reply:
        tool = request.path.removeprefix(PREFIX)
        known = tool if tool in self.book.ledger.tools else "a tool that is not there"
        self.book.hear(life, known, request.parts)
        try:
            if known != tool and request.method == "POST":
                self.book.refuse(life, Tools.name, tool, _attempted(request))
            tool = self._tool(request)
            if request.method == "GET":
                return await self._look_up(life, tool, request)
            return await self._call(life, tool, request)
        except _Refused as refused:
            return refused.reply
        except Failed as failed:
            return failure(failed.fault)

    def _tool(self, request: Request) -> str:
        """The declared tool that a request is about."""
        tool = request.path.removeprefix(PREFIX)
        declared = self.book.ledger.tools
        if not request.path.startswith(PREFIX) or tool not in declared:
            known = ", ".join(declared) or "none"
            message = f"there is no tool at {request.path}; expected {PREFIX}TOOL, TOOL"
            raise _Refused(error(404, "not_found", f"{message} being one of: {known}"))
        self._check_method(request.method, tool)
        return tool

    def _check_method(self, method: str, tool: str) -> None:
        declared = self.book.ledger.tools[tool]
        allowed = {"POST": declared.via is Via.HTTP}
        allowed["GET"] = declared.cls is ToolClass.QUERYABLE
        if allowed.get(method):
            return
        if method == "GET":
            message = f"{tool} answers no look-up; only queryable tools do"
            raise _Refused(error(404, "not_found", message))
        names = ", ".join(name for name, holds in allowed.items() if holds)
        message = f"{tool} takes {names or 'no request here'}, not {method}"
        if declared.via is Via.SMTP:
            message += "; it is called by a mail to CHAOSKIT_SMTP_HOST"
        raise _Refused(error(405, "method_not_allowed", message, Allow=names))

    async def _look_up(self, life: int, tool: str, request: Request) -> Reply:
        found = await self.book.look_up(life, Tools.name, tool, request.query)
        return Reply({"effects": found.result}, crossing=found.crossing)

    async def _call(self, life: int, tool: str, request: Request) -> Reply:
        call = Call(tool, _args(request), _idempotency_key(request))
        operation = self.book.operation(Tools.name, tool, call.args)
        done = await self.book.call(life, operation, call)
        return Reply({"result": done.result}, crossing=done.crossing)


def _args(request: Request) -> dict[str, JsonValue]:
    expected = "expected the tool's arguments as a JSON object"
    try:
        args = parse(request.body)
    except ValueError as wrong:
        message = f"the body is no JSON: {wrong}; {expected}"
        raise _Refused(error(400, "bad_request", message)) from None
    if not isinstance(args, dict):
        message = f"the body is a JSON {type(args).__name__}; {expected}"
        raise _Refused(error(400, "bad_request", message))
    return args


def _attempted(request: Request) -> dict[str, JsonValue]:
    """The arguments of a call that is refused, as far as they are some."""
    try:
        return _args(request)
    except _Refused:
        return {}


def _idempotency_key(request: Request) -> str | None:
    sent = request.all("idempotency-key")
    if not sent:
        return None
    flaw = key_flaw(sent[0] if len(sent) == 1 else sent)
    if flaw is not None:
        raise _Refused(error(400, "bad_request", f"Idempotency-Key {flaw}"))
    return sent[0]
