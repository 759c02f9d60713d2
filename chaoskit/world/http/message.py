"""Requests and replies, as a service sees them."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from chaoskit.gate import Crossing
from chaoskit.model.schedule import Fault


@dataclass(frozen=True)
class Request:
    """A request that has arrived whole. ``headers`` ignore case and may repeat."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def parts(self) -> Iterator[str | bytes]:
        """Everything in it that a client may have put something into."""
        yield self.path
        for name, value in (*self.query, *self.headers):
            yield from (name, value)
        yield self.body

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
