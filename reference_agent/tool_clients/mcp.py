"""The tool service over MCP (streamable HTTP), by the official SDK.

The call's key is `_meta.idempotency_key`. What was done is the resource
`effects:///TOOL?argument=value`; neither is of MCP itself, so ask the server's owner.

One session a call, and the request goes out once: the SDK's own way to call a tool may
send it again, or ask for more in between.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import anyio
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ReadResourceRequest,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
    TextResourceContents,
)

from reference_agent.effects import Effect, NoLookUp, ToolFailed, Trouble
from reference_agent.tool_clients.answers import as_text, effects
from reference_agent.transitions import Outcome

TIMEOUT_SECONDS = 30
TOO_MANY = 429
NO_RESOURCE = (-32002, INVALID_PARAMS, METHOD_NOT_FOUND)
"""The first in revisions before 2026-07-28, the second since; the third where a server
has no resources at all."""

Request = CallToolRequest | ReadResourceRequest
Result = CallToolResult | ReadResourceResult

# It logs what it could not read, with the content, on standard error.
logging.getLogger("mcp").setLevel(logging.CRITICAL)


@dataclass
class _Course:
    """How far one request came."""

    sent: bool = False
    status: int = 0
    """Of the newest answer on the HTTP level, where gateways speak."""
    answer: Result | MCPError | None = None

    async def see(self, response: httpx2.Response) -> None:
        self.status = response.status_code


class McpTools:
    """A `ToolService` at the URL of an MCP server."""

    def __init__(self, url: str) -> None:
        self._url = url

    def do(self, tool: str, arguments: dict[str, Any], key: str) -> Outcome:
        """See `ToolService.do`. A refusal is an outcome: the model may know better."""
        meta: Any = {"idempotency_key": key}
        params = CallToolRequestParams(name=tool, arguments=arguments, _meta=meta)
        course = self._ask(CallToolRequest(params=params), CallToolResult)
        if isinstance(course.answer, CallToolResult):
            return _outcome(course.answer)
        if isinstance(course.answer, MCPError) and course.answer.code == INVALID_PARAMS:
            return Outcome(f"Error: {course.answer.message}", applied=False)
        raise _trouble(course)

    def done(self, tool: str, arguments: dict[str, Any]) -> list[Effect]:
        """See `ToolService.done`."""
        params = ReadResourceRequestParams(uri=_uri(tool, arguments))
        course = self._ask(ReadResourceRequest(params=params), ReadResourceResult)
        answer = course.answer
        if isinstance(answer, MCPError) and answer.code in NO_RESOURCE:
            raise NoLookUp
        if isinstance(answer, ReadResourceResult) and answer.contents:
            first = answer.contents[0]
            if isinstance(first, TextResourceContents):
                return effects(first.text, arguments)
        raise Trouble(f"the look-up of {tool} brought nothing", sent=False)

    def _ask(self, request: Request, kind: type[Any]) -> _Course:
        """One request, as far as it comes: what breaks is seen by what is missing."""
        course = _Course()
        try:
            anyio.run(partial(self._exchange, request, kind, course))
        except Exception as error:  # a group: the SDK does its work in several tasks
            if course.answer is None and not course.sent:
                raise Trouble("no connection", sent=False) from error
        return course

    async def _exchange(
        self, request: Request, kind: type[Any], course: _Course
    ) -> None:
        hooks = {"response": [course.see]}
        timeout = httpx2.Timeout(TIMEOUT_SECONDS)
        async with httpx2.AsyncClient(timeout=timeout, event_hooks=hooks) as http:
            transport = streamable_http_client(self._url, http_client=http)
            async with Client(
                transport, mode="auto", read_timeout_seconds=TIMEOUT_SECONDS
            ) as client:
                course.sent, course.status = True, 0
                try:
                    course.answer = await client.session.send_request(request, kind)
                except MCPError as error:
                    course.answer = error


def _trouble(course: _Course) -> Trouble:
    """A call that has no result; 429 alone says that it was not done."""
    sent = course.status != TOO_MANY
    if isinstance(course.answer, MCPError):
        return Trouble(f"it answered {course.answer.code}", sent=sent)
    return Trouble("no answer", sent=sent)


def _outcome(result: CallToolResult) -> Outcome:
    texts = [each.text for each in result.content if isinstance(each, TextContent)]
    if result.is_error:
        raise ToolFailed("\n".join(texts) or "it does not say why")
    structured = result.structured_content
    if isinstance(structured, Mapping) and list(structured) == ["result"]:
        return Outcome(as_text(structured["result"]), applied=True)
    text = "\n".join(texts) or as_text(structured)
    return Outcome(text, applied=True)


def _uri(tool: str, arguments: dict[str, Any]) -> str:
    named = {name: as_text(value) for name, value in arguments.items()}
    return f"effects:///{quote(tool, safe='')}?{urlencode(named, quote_via=quote)}"
