"""MCP's messages: what they are made of, and the revisions that have them. Pure.

Written from the specification's revisions 2025-03-26 to 2026-07-28. Two eras share an
endpoint. A *modern* request (2026-07-28) names its revision in itself, in ``_meta`` and
in headers that repeat the body. A *legacy* client agrees on a revision by
``initialize`` and then sends it as a header; a request without one is 2025-03-26, the
only revision that has batches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from chaoskit.wire.json_text import compact

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions with a handshake; the last one is offered to who asks for none."""
MODERN = ("2026-07-28",)
BATCHED = "2025-03-26"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_SERVER = "io.modelcontextprotocol/serverInfo"

Headers = Mapping[str, Sequence[str]]
"""Every value of every header, by its name in lower case."""
Id = int | str


class Refusal(Exception):
    """A message that is not served, with the JSON-RPC error that says why."""

    def __init__(
        self,
        status: int,
        code: int,
        message: str,
        *,
        data: JsonValue = None,
        to: Id | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.data = data
        self.to = to

    def body(self, to: Id | None = None) -> dict[str, JsonValue]:
        """The error response, to the request of that id."""
        return failure(self.to if to is None else to, self.code, str(self), self.data)


@dataclass(frozen=True)
class Message:
    """A request, or a notification, which has no ``id`` and gets no response."""

    method: str
    params: dict[str, JsonValue]
    id: Id | None = None

    @property
    def meta(self) -> dict[str, JsonValue]:
        """What travels beside the parameters."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


@dataclass(frozen=True)
class Post:
    """What came in one POST. A response of the client's leaves no message."""

    version: str
    messages: tuple[Message, ...]
    batch: bool = False

    @property
    def modern(self) -> bool:
        """Whether each request stands for itself."""
        return self.version in MODERN


def success(to: Id | None, result: JsonValue) -> dict[str, JsonValue]:
    """The response to a request that was done."""
    return {"jsonrpc": "2.0", "id": to, "result": result}


def failure(
    to: Id | None, code: int, message: str, data: JsonValue = None
) -> dict[str, JsonValue]:
    """The response to a request that was not; ``to`` is None where it has no id."""
    error: dict[str, JsonValue] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": to, "error": error}


def event(message: JsonValue) -> bytes:
    """A message as a server-sent event."""
    return f"event: message\ndata: {compact(message)}\n\n".encode()
