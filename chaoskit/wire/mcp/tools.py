"""A scenario's tools as MCP shows them, and results in the shape of each revision.

The shapes are those of the official SDK's types, which know what a revision has and
drop what it has not. They take a third of a second to import: whoever serves MCP
imports this module when the first request has come.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote

from mcp_types import methods
from pydantic import JsonValue, ValidationError

from chaoskit import __version__
from chaoskit.model.scenario import Call, Tool, ToolClass
from chaoskit.wire.json_text import compact
from chaoskit.wire.mcp.messages import (
    INVALID_PARAMS,
    META_SERVER,
    METHOD_NOT_FOUND,
    Refusal,
)

SERVER: dict[str, JsonValue] = {"name": "chaoskit", "version": __version__}
UNCACHED: dict[str, JsonValue] = {
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": {META_SERVER: SERVER},
}
"""What every result has beside its own in modern revisions."""
SCHEME = "effects"
_CAPABILITIES: dict[str, JsonValue] = {"tools": {}, "resources": {}}
_INSTRUCTIONS = (
    "A call's idempotency key travels in its _meta as idempotency_key. What a "
    f"queryable tool has done is the resource {SCHEME}:///TOOL?argument=value."
)
_PROMISES = {
    ToolClass.READ: "has no effect",
    ToolClass.KEYED: "applies a given _meta.idempotency_key once",
    ToolClass.QUERYABLE: "applies every call; its effects can be read as a resource",
    ToolClass.BLIND: "applies every call",
}
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}
_TYPES |= {list: "array", dict: "object", type(None): "null"}


def check_params(method: str, version: str, params: Mapping[str, JsonValue]) -> None:
    """Whether a request is one that its revision has, with the right parameters.

    Raises:
        Refusal: it is not.
    """
    try:
        methods.validate_client_request(method, version, params)
    except KeyError:
        message = f"Method not found: {method} (revision {version})"
        raise Refusal(404, METHOD_NOT_FOUND, message) from None
    except ValidationError as wrong:
        problems = "; ".join(
            f"{'.'.join(map(str, error['loc']))}: {error['msg']}"
            for error in wrong.errors(include_url=False, include_context=False)
        )
        message = f"Invalid params of {method}: {problems}"
        raise Refusal(400, INVALID_PARAMS, message) from None


def shaped(method: str, version: str, result: Mapping[str, JsonValue]) -> JsonValue:
    """A result as the revision writes it."""
    written: dict[str, JsonValue]
    written = methods.serialize_server_result(method, version, result)
    return written


def initialized(version: str) -> dict[str, JsonValue]:
    """The answer to `initialize`."""
    return {
        "protocolVersion": version,
        "capabilities": _CAPABILITIES,
        "serverInfo": SERVER,
        "instructions": _INSTRUCTIONS,
    }


def discovered(versions: Iterable[str]) -> dict[str, JsonValue]:
    """The answer to `server/discover`."""
    return {
        "supportedVersions": list[JsonValue](versions),
        "capabilities": _CAPABILITIES,
        "instructions": _INSTRUCTIONS,
    }


def listed(tools: Mapping[str, Tool], calls: Iterable[Call]) -> JsonValue:
    """The tools, each with a schema made from its calls in the script.

    A schema refuses nothing: what the script does not have is for the checks to find.
    """
    by_tool: dict[str, list[dict[str, JsonValue]]] = {name: [] for name in tools}
    for call in calls:
        by_tool.get(call.tool, []).append(call.args)
    return [_tool(name, tools[name], seen) for name, seen in by_tool.items()]


def _tool(
    name: str, tool: Tool, seen: list[dict[str, JsonValue]]
) -> dict[str, JsonValue]:
    schema: dict[str, JsonValue] = {"type": "object"}
    names = dict.fromkeys(arg for args in seen for arg in args)
    if names:
        schema["properties"] = {arg: _types_of(arg, seen) for arg in names}
        always = [arg for arg in names if all(arg in args for args in seen)]
        schema["required"] = list[JsonValue](always)
    return {
        "name": name,
        "description": f"{name}: {_PROMISES[tool.cls]}.",
        "inputSchema": schema,
        "outputSchema": {
            "type": "object",
            "properties": {"result": {}},
            "required": ["result"],
        },
        "annotations": {"readOnlyHint": tool.cls is ToolClass.READ},
    }


def _types_of(arg: str, seen: Iterable[dict[str, JsonValue]]) -> JsonValue:
    kinds = dict.fromkeys(_TYPES[type(args[arg])] for args in seen if arg in args)
    first, *more = kinds
    return {"type": [first, *more] if more else first}


def call_result(result: JsonValue) -> dict[str, JsonValue]:
    """What a tool answered, for programs and as text."""
    content: dict[str, JsonValue] = {"result": result}
    text: JsonValue = {"type": "text", "text": compact(content)}
    return {"content": [text], "structuredContent": content, "isError": False}


def call_failed(message: str) -> dict[str, JsonValue]:
    """A tool's own failure, which is for the model to read."""
    return {"content": [{"type": "text", "text": message}], "isError": True}


def templates(tools: Mapping[str, Tool], calls: Iterable[Call]) -> list[JsonValue]:
    """The look-ups of queryable tools, as templates of resources."""
    names: dict[str, dict[str, None]] = {
        tool: {}
        for tool, declared in tools.items()
        if declared.cls is ToolClass.QUERYABLE
    }
    for call in calls:
        names.get(call.tool, {}).update(dict.fromkeys(call.args))
    return [
        {
            "name": f"effects of {tool}",
            "description": f"What {tool} has done, by arguments compared as text.",
            "uriTemplate": f"{SCHEME}:///{tool}{_query(args)}",
            "mimeType": "application/json",
        }
        for tool, args in names.items()
    ]


def _query(args: Iterable[str]) -> str:
    names = ",".join(quote(arg, safe="_.") for arg in args)
    return f"{{?{names}}}" if names else ""


def looked_up(uri: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """The tool and the arguments that a resource asks for; None if it is none."""
    name, _, query = uri.partition("?")
    begin = f"{SCHEME}:///"
    if not name.startswith(begin):
        return None
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        return None
    return name.removeprefix(begin), tuple(pairs)


def contents(uri: str, effects: JsonValue) -> dict[str, JsonValue]:
    """What reading a look-up answers: the body of the tools service's look-up."""
    return {
        "contents": [
            {
                "uri": uri,
                "mimeType": "application/json",
                "text": compact({"effects": effects}),
            }
        ]
    }
