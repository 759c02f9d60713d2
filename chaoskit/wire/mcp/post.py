"""MCP over streamable HTTP: what a POST holds, or why it is refused. Pure.

Source: the specification's pages "Streamable HTTP" and "Versioning", per revision.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from pydantic import JsonValue

from chaoskit.wire.json_text import parse
from chaoskit.wire.mcp.messages import (
    BATCHED,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LEGACY,
    META_CAPABILITIES,
    META_VERSION,
    MODERN,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Headers,
    Id,
    Message,
    Post,
    Refusal,
)

_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")


def read(headers: Headers, body: bytes) -> Post:
    """Read a POST.

    Raises:
        Refusal: with the HTTP status that goes with it.
    """
    _check_carrier(headers)
    try:
        said = parse(body)
    except ValueError as wrong:
        raise Refusal(400, PARSE_ERROR, f"the body is no JSON: {wrong}") from None
    if isinstance(said, list):
        return _batch(headers, said)
    message = _message(said)
    if message is not None and _is_modern(headers, message):
        return Post(_modern(headers, message), (message,))
    version = _legacy(headers, message)
    if message is None and version in MODERN:
        response = f"in revision {version} a client sends no responses"
        raise Refusal(400, INVALID_REQUEST, response)
    return Post(version, () if message is None else (message,))


def negotiated(asked: JsonValue) -> str:
    """The revision that `initialize` is answered with."""
    return asked if isinstance(asked, str) and asked in LEGACY else LEGACY[-1]


def _check_carrier(headers: Headers) -> None:
    """Origin, content type and accepted types, as every revision asks for them."""
    for origin in headers.get("origin", ()):
        if urlsplit(origin).hostname not in _LOOPBACK:
            raise Refusal(403, INVALID_REQUEST, f"the Origin {origin!r} is not allowed")
    kinds = _types(headers, "content-type")
    if kinds != ["application/json"]:
        message = f"Content-Type was {_shown(kinds)}; expected application/json"
        raise Refusal(415, INVALID_REQUEST, message)
    accepted = _types(headers, "accept")
    for kind in ("application/json", "text/event-stream"):
        if not {kind, f"{kind.split('/')[0]}/*", "*/*"} & set(accepted):
            message = f"Accept was {_shown(accepted)}; expected it to list {kind}"
            raise Refusal(406, INVALID_REQUEST, message)


def _types(headers: Headers, name: str) -> list[str]:
    listed = ",".join(headers.get(name, ())).lower().split(",")
    return [kind for each in listed if (kind := each.split(";")[0].strip())]


def _shown(values: Sequence[str]) -> str:
    return ", ".join(values) or "missing"


def _batch(headers: Headers, said: list[JsonValue]) -> Post:
    version = _legacy(headers, None)
    if version != BATCHED:
        message = f"revision {version} has no batches; expected one JSON-RPC message"
        raise Refusal(400, INVALID_REQUEST, message)
    if not said:
        raise Refusal(400, INVALID_REQUEST, "the batch is empty")
    messages = [found for each in said if (found := _message(each))]
    if any(found.method == "initialize" for found in messages):
        raise Refusal(400, INVALID_REQUEST, "initialize is never part of a batch")
    return Post(version, tuple(messages), batch=True)


def _message(said: JsonValue) -> Message | None:
    """A request or a notification; None for a response."""
    if not isinstance(said, dict) or said.get("jsonrpc") != "2.0":
        found = said.get("jsonrpc") if isinstance(said, dict) else type(said).__name__
        wanted = 'one JSON-RPC message with "jsonrpc": "2.0"'
        raise Refusal(400, INVALID_REQUEST, f"expected {wanted}, not {found!r}")
    if "method" not in said and ("result" in said or "error" in said):
        return None
    name = said.get("id")
    if "id" in said and (isinstance(name, bool) or not isinstance(name, int | str)):
        message = f"the id {name!r} is neither a string nor a whole number"
        raise Refusal(400, INVALID_REQUEST, message)
    method, params = said.get("method"), said.get("params", {})
    assert isinstance(name, int | str | None)
    if not isinstance(method, str):
        wrong = f"the method is {method!r}, expected a string"
        raise Refusal(400, INVALID_REQUEST, wrong, to=name)
    if not isinstance(params, dict):
        wrong = f"the params are {params!r}, expected an object"
        raise Refusal(400, INVALID_REQUEST, wrong, to=name)
    return Message(method, params, name)


def _is_modern(headers: Headers, message: Message) -> bool:
    if message.method == "initialize":
        return False
    sent = headers.get("mcp-protocol-version", ())
    return META_VERSION in message.meta or any(each in MODERN for each in sent)


def _legacy(headers: Headers, message: Message | None) -> str:
    """The revision of a request that does not name it in itself."""
    if message is not None and message.method == "initialize":
        return negotiated(message.params.get("protocolVersion"))
    sent = headers.get("mcp-protocol-version", ())
    if not sent:
        return BATCHED
    if len(set(sent)) == 1 and sent[0] in LEGACY + MODERN:
        return sent[0]
    raise _unsupported(", ".join(sent), None if message is None else message.id)


def _modern(headers: Headers, message: Message) -> str:
    """The revision of a request that stands for itself; its headers repeat it."""
    if message.id is None:
        return _legacy(headers, message)  # what headers it needs is not defined
    missing = [n for n in (META_VERSION, META_CAPABILITIES) if n not in message.meta]
    if missing:
        said = f"params._meta lacks {' and '.join(missing)}"
        raise Refusal(400, INVALID_PARAMS, said, to=message.id)
    version = message.meta[META_VERSION]
    repeated = {"mcp-protocol-version": version, "mcp-method": message.method}
    if message.method in _NAMED_BY:
        named = message.params.get(_NAMED_BY[message.method])
        repeated["mcp-name"] = named
    for name, value in repeated.items():
        sent = list(map(_decoded, headers.get(name, ())))
        if sent != [value]:
            said = f"the header {name} was {_sent(sent)}, and the body says {value!r}"
            raise Refusal(400, HEADER_MISMATCH, said, to=message.id)
    if not isinstance(version, str) or version not in MODERN:
        raise _unsupported(version, message.id)
    return version


def _sent(values: Sequence[str]) -> str:
    return ", ".join(map(repr, values)) or "missing"


def _decoded(value: str) -> str:
    """A header's value, which may be encoded; as it is where the code is broken."""
    found = _ENCODED.fullmatch(value)
    if found is None:
        return value
    try:
        return base64.b64decode(found[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value


def _unsupported(requested: JsonValue, to: Id | None) -> Refusal:
    supported: list[JsonValue] = [*LEGACY, *MODERN]
    data: JsonValue = {"supported": supported, "requested": requested}
    message = f"protocol version {requested!r} is not supported"
    return Refusal(400, UNSUPPORTED_VERSION, message, data=data, to=to)
