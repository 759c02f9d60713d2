"""The `tools` service: effects over HTTP.

``POST $CHAOSKIT_TOOLS_URL/charge_card`` with a JSON object does the effect and answers
``{"result": ...}``: the operation ``charge_card``, its key the call's first argument in
the script's order. ``GET $CHAOSKIT_TOOLS_URL/charge_card?order=o-1`` looks up what a
queryable tool has done: the operation ``charge_card?``. Both have the edges ``before``
and ``after``. A request that is no call of a declared tool is answered with an error
and crosses nothing.

The look-up answers ``{"effects": [{"args": ..., "result": ..., "idempotency_key":
...}]}``, oldest first: the effects whose arguments equal every parameter of the query,
compared as text (``cents=42000`` finds 42000). A parameter that is no argument of an
effect matches none. For tools that are not queryable the answer is 404.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pydantic import JsonValue

from chaoskit.gate import Crossing, Gate
from chaoskit.model.address import Operation
from chaoskit.model.history import Applied, Delivered
from chaoskit.model.scenario import Scenario, ToolClass
from chaoskit.wire.json_text import parse
from chaoskit.world.http import HttpLives, Reply, Request
from chaoskit.world.ledger import Effect, Ledger
from chaoskit.world.listener import LOOPBACK

BODY_BYTES_MAX = 2**20
KEY_LENGTH_MAX = 255
PREFIX = "/tools/"


class Tools:
    """See the module's docstring. One per worker process."""

    name = "tools"
    variables: ClassVar[Mapping[str, str]] = {
        "CHAOSKIT_TOOLS_URL": "`POST $URL/TOOL` does an effect, `GET` looks them up"
    }

    def __init__(self) -> None:
        message = f"the body has more than {BODY_BYTES_MAX} bytes"
        self._http = HttpLives(BODY_BYTES_MAX, error(413, "too_large", message))
        self._port = 0
        self._counter: _Counter | None = None

    async def start(self) -> None:
        """Take a port for the campaign."""
        self._port = await self._http.start()

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """Begin a new ledger."""
        await self._http.close_all()
        self._counter = _Counter(gate, Ledger(scenario))

    async def open(self, life: int) -> dict[str, str]:
        """Fresh sockets for a life, and the variable that names them."""
        counter = self._open_counter

        async def handle(request: Request) -> Reply:
            return await counter.serve(life, request)

        await self._http.open(life, handle)
        base = PREFIX.rstrip("/")
        return {"CHAOSKIT_TOOLS_URL": f"http://{LOOPBACK}:{self._port}{base}"}

    async def close(self, life: int) -> None:
        """Drop every connection of a life at once."""
        await self._http.close(life)

    async def snapshot(self) -> tuple[Effect, ...]:
        """Every effect so far."""
        return self._open_counter.ledger.effects

    async def restore(self, snapshot: object) -> None:
        """Take up an earlier ledger."""
        assert isinstance(snapshot, tuple)
        self._open_counter.ledger.effects = snapshot

    async def view(self) -> JsonValue:
        """Every effect so far, by tool."""
        return self._open_counter.ledger.view()

    async def stop(self) -> None:
        """Give the port back."""
        await self._http.stop()

    @property
    def _open_counter(self) -> "_Counter":
        assert self._counter is not None, "reset comes first"
        return self._counter


def error(status: int, kind: str, message: str, **headers: str) -> Reply:
    """An error in the form that section 3 of the contract gives it."""
    return Reply({"error": {"message": message, "type": kind}}, status, headers)


class _Refused(Exception):
    def __init__(self, reply: Reply) -> None:
        self.reply = reply


@dataclass(frozen=True)
class _Counter:
    """Where calls of one trial are handed in, each from one of its lives."""

    gate: Gate
    ledger: Ledger

    async def serve(self, life: int, request: Request) -> Reply:
        try:
            tool = self._tool(request)
            if request.method == "GET":
                return await self._look_up(life, tool, request)
            return await self._call(life, tool, request)
        except _Refused as refused:
            return refused.reply

    def _tool(self, request: Request) -> str:
        """The declared tool that a request is about."""
        tool = request.path.removeprefix(PREFIX)
        declared = self.ledger.tools
        if not request.path.startswith(PREFIX) or tool not in declared:
            known = ", ".join(declared) or "none"
            message = f"there is no tool at {request.path}; expected {PREFIX}TOOL, TOOL"
            raise _Refused(error(404, "not_found", f"{message} being one of: {known}"))
        self._check_method(request.method, tool)
        return tool

    def _check_method(self, method: str, tool: str) -> None:
        queryable = self.ledger.tools[tool].cls is ToolClass.QUERYABLE
        if method == "POST" or (method == "GET" and queryable):
            return
        if method == "GET":
            message = f"{tool} answers no look-up; only queryable tools do"
            raise _Refused(error(404, "not_found", message))
        allowed = "POST, GET" if queryable else "POST"
        message = f"{tool} takes {allowed}, not {method}"
        raise _Refused(error(405, "method_not_allowed", message, Allow=allowed))

    async def _look_up(self, life: int, tool: str, request: Request) -> Reply:
        key = self.ledger.key(tool, dict(request.query))

        async def find() -> Reply:
            found = self.ledger.look_up(tool, request.query)
            return Reply({"effects": [_listed(effect) for effect in found]})

        crossing = self.gate.arrive(life, Operation("tools", f"{tool}?", key))
        return await self.gate.cross(crossing, find)

    async def _call(self, life: int, tool: str, request: Request) -> Reply:
        call = _Call(tool, _args(request), _idempotency_key(request))
        key = self.ledger.key(tool, call.args)
        crossing = self.gate.arrive(life, Operation("tools", tool, key))
        self.gate.record(call.delivered(crossing))

        async def apply() -> Reply:
            return Reply({"result": self._apply(crossing, call)})

        return await self.gate.cross(crossing, apply)

    def _apply(self, crossing: Crossing, call: "_Call") -> JsonValue:
        if self.ledger.is_read(call.tool):
            return self.ledger.read(call.tool)
        earlier = self.ledger.earlier(call.tool, call.idempotency_key)
        effect = earlier or self.ledger.apply(
            call.tool, call.args, call.idempotency_key
        )
        late = self.gate.is_over(crossing.life)
        self.gate.record(call.applied(crossing, first=earlier is None, late=late))
        return effect.result


@dataclass(frozen=True)
class _Call:
    tool: str
    args: dict[str, JsonValue]
    idempotency_key: str | None

    def delivered(self, crossing: Crossing) -> Delivered:
        return Delivered(
            life=crossing.life,
            message=crossing.message,
            tool=self.tool,
            args=self.args,
            idempotency_key=self.idempotency_key,
        )

    def applied(self, crossing: Crossing, *, first: bool, late: bool) -> Applied:
        return Applied(
            life=crossing.life,
            message=crossing.message,
            tool=self.tool,
            args=self.args,
            idempotency_key=self.idempotency_key,
            first=first,
            late=late,
        )


def _listed(effect: Effect) -> JsonValue:
    return {
        "args": effect.args,
        "result": effect.result,
        "idempotency_key": effect.idempotency_key,
    }


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


def _idempotency_key(request: Request) -> str | None:
    sent = request.all("idempotency-key")
    if not sent:
        return None
    key = sent[0]
    plain = key.isascii() and key.isprintable() and 0 < len(key) <= KEY_LENGTH_MAX
    if len(sent) > 1 or not plain:
        message = (
            f"Idempotency-Key was {', '.join(map(repr, sent))}; expected one key of 1 "
            f"to {KEY_LENGTH_MAX} printable ASCII characters"
        )
        raise _Refused(error(400, "bad_request", message))
    return key
