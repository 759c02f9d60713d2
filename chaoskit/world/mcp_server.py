"""Serves MCP requests from the book; what they may be, `chaoskit.wire.mcp` says."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from chaoskit.gate import Crossing, Failed
from chaoskit.model.scenario import Scenario, Tool, ToolClass, Via
from chaoskit.model.schedule import Fault
from chaoskit.wire.mcp import messages as mcp
from chaoskit.wire.mcp import post as mcp_post
from chaoskit.wire.mcp import tools as mcp_tools
from chaoskit.wire.mcp.messages import Message, Post, Refusal
from chaoskit.world.book import Book, Call
from chaoskit.world.http import Answer, Reply, Request, Streamed
from chaoskit.world.ledger import forms, key_flaw
from chaoskit.world.mcp import PATH, Mcp
from chaoskit.world.tools_errors import error, failure

_ERROR_STATUS = {
    mcp.PARSE_ERROR: 400,
    mcp.INVALID_REQUEST: 400,
    mcp.INVALID_PARAMS: 400,
    mcp.METHOD_NOT_FOUND: 404,
}
"""Modern revisions repeat an error in the status; for legacy ones it is 200."""
_UNBUFFERED = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}


@dataclass(frozen=True)
class _Done:
    """The response to one request, and how it is to be sent."""

    response: dict[str, JsonValue]
    crossing: Crossing | None = None
    status: int = 200
    progress: JsonValue = None


@dataclass(frozen=True)
class Server:
    """The server as one life sees it."""

    book: Book
    scenario: Scenario
    life: int

    async def serve(self, request: Request) -> Answer:
        """Answer one HTTP request; raises `Dropped` as the gate does."""
        self.book.hear(self.life, "a tool over MCP", request.parts)
        if request.path != PATH:
            message = f"there is nothing at {request.path}; expected {PATH}"
            return error(404, "not_found", message)
        if request.method != "POST":
            message = f"{PATH} takes POST, not {request.method}"
            return error(405, "method_not_allowed", message, Allow="POST")
        try:
            return await self._post(mcp_post.read(_headers(request), request.body))
        except Refusal as refused:
            return Reply(refused.body(), refused.status)
        except Failed as failed:
            return failure(failed.fault)

    async def _post(self, post: Post) -> Answer:
        asked = [message for message in post.messages if message.id is not None]
        done = [await self._request(post, message) for message in asked]
        if not done:
            return Reply(None, 202)
        if post.batch:
            responses: JsonValue = [each.response for each in done]
            crossings = [each.crossing for each in done if each.crossing is not None]
            return Reply(responses, crossing=crossings[-1] if crossings else None)
        return _sent(done[0])

    async def _request(self, post: Post, message: Message) -> _Done:
        try:
            return await self._answer(post.version, message)
        except Refusal as refused:
            status = _ERROR_STATUS.get(refused.code, 200) if post.modern else 200
            return _Done(refused.body(message.id), status=status)

    async def _answer(self, version: str, message: Message) -> _Done:
        mcp_tools.check_params(message.method, version, message.params)
        if message.method == "tools/call":
            return await self._call(version, message)
        if message.method == "resources/read":
            return await self._read(version, message)
        return self._done(version, message, self._plain(version, message))

    def _plain(self, version: str, message: Message) -> dict[str, JsonValue]:
        """What is answered without a crossing."""
        calls, tools = forms(self.scenario), self._tools
        if message.params.get("cursor") is not None:
            cursor = message.params["cursor"]
            said = f"there is no page {cursor!r}: every list has one page"
            raise Refusal(400, mcp.INVALID_PARAMS, said)
        match message.method:
            case "initialize":
                return mcp_tools.initialized(version)
            case "server/discover":
                return mcp_tools.discovered((*mcp.LEGACY, *mcp.MODERN))
            case "tools/list":
                return {"tools": mcp_tools.listed(tools, calls)}
            case "resources/list":
                return {"resources": []}
            case "resources/templates/list":
                queryable = mcp_tools.templates(self.scenario.tools, calls)
                return {"resourceTemplates": queryable}
            case "ping":
                return {}
        said = f"Method not found: {message.method} (this server has tools only)"
        raise Refusal(404, mcp.METHOD_NOT_FOUND, said)

    async def _call(self, version: str, message: Message) -> _Done:
        name, args = message.params["name"], message.params.get("arguments") or {}
        assert isinstance(name, str)
        assert isinstance(args, dict)
        if name not in self._tools:
            if name not in self.scenario.tools:
                self.book.refuse(self.life, Mcp.name, name, args)
            known = ", ".join(self._tools) or "none"
            said = f"Unknown tool: {name}; there are: {known}"
            raise Refusal(400, mcp.INVALID_PARAMS, said)
        call = Call(name, args, _idempotency_key(message))
        token = message.meta.get("progressToken")
        operation = self.book.operation(Mcp.name, name, args)
        pieces = None if token is None else 2
        try:
            done = await self.book.call(self.life, operation, call, pieces)
        except Failed as failed:
            return self._failed(version, message, failed.fault)
        result = mcp_tools.call_result(done.result)
        return self._done(version, message, result, done.crossing, token)

    async def _read(self, version: str, message: Message) -> _Done:
        uri = str(message.params["uri"])
        tool, wanted = mcp_tools.looked_up(uri) or ("", ())
        declared = self.scenario.tools.get(tool)
        if declared is None or declared.cls is not ToolClass.QUERYABLE:
            modern = version in mcp.MODERN
            code = mcp.INVALID_PARAMS if modern else mcp.RESOURCE_NOT_FOUND
            said = f"Resource not found: {uri}; only queryable tools have look-ups"
            raise Refusal(400, code, said, data={"uri": uri})
        try:
            found = await self.book.look_up(self.life, Mcp.name, tool, wanted)
        except Failed as failed:
            return self._failed(version, message, failed.fault)
        result = mcp_tools.contents(uri, found.result)
        return self._done(version, message, result, found.crossing)

    def _failed(self, version: str, message: Message, fault: Fault) -> _Done:
        """How a request goes wrong by a fault; raises it where the gateway answers."""
        if fault.chosen == "isError" and message.method == "tools/call":
            result = mcp_tools.call_failed(f"{message.params['name']} failed inside")
            return self._done(version, message, result)
        if fault.chosen in ("isError", str(mcp.INTERNAL_ERROR)):
            said = "the server failed inside"
            return _Done(mcp.failure(message.id, mcp.INTERNAL_ERROR, said))
        raise Failed(fault)

    def _done(
        self,
        version: str,
        message: Message,
        result: Mapping[str, JsonValue],
        crossing: Crossing | None = None,
        progress: JsonValue = None,
    ) -> _Done:
        if version in mcp.MODERN:
            result = {**mcp_tools.UNCACHED, **result}
        written = mcp_tools.shaped(message.method, version, result)
        response = mcp.success(message.id, written)
        return _Done(response, crossing, progress=progress)

    @property
    def _tools(self) -> dict[str, Tool]:
        tools = self.scenario.tools
        return {name: tool for name, tool in tools.items() if tool.via is Via.HTTP}


def _headers(request: Request) -> dict[str, list[str]]:
    sent: dict[str, list[str]] = {}
    for name, value in request.headers:
        sent.setdefault(name.lower(), []).append(value)
    return sent


def _idempotency_key(message: Message) -> str | None:
    key = message.meta.get("idempotency_key")
    if key is None:
        return None
    if flaw := key_flaw(key):
        raise Refusal(400, mcp.INVALID_PARAMS, f"_meta.idempotency_key {flaw}")
    return str(key)


def _sent(done: _Done) -> Answer:
    if done.progress is None or done.crossing is None:
        return Reply(done.response, done.status, crossing=done.crossing)
    params: JsonValue = {"progressToken": done.progress, "progress": 1, "total": 1}
    method = "notifications/progress"
    notice: JsonValue = {"jsonrpc": "2.0", "method": method, "params": params}
    pieces = (mcp.event(notice), mcp.event(done.response))
    return Streamed(pieces, done.crossing, lambda _: b"", headers=_UNBUFFERED)
