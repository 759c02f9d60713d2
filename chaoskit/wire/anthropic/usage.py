"""What a Messages request and its answer cost, in the shapes of the Anthropic API.

A prefix that a request marks with ``cache_control`` counts as read as far as an earlier
request of the conversation has sent it (up to the last turn of the model), and as
written beyond that. The real service forgets a prefix after minutes and caches none
that is short; here usage hangs on the conversation alone, like everything else.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from chaoskit.wire.anthropic.blocks import Block, blocks_of, messages_of, result_texts
from chaoskit.wire.json_text import compact
from chaoskit.wire.said import tokens

TOKENS_PER_MESSAGE = 3


@dataclass(frozen=True)
class _Part:
    """A part of a prompt, in the order in which prefixes are cached."""

    tokens: int
    mark: Mapping[str, Any] | None = None
    """Its ``cache_control``: the prefix to be cached ends here."""
    role: str = ""


@dataclass(frozen=True)
class Usage:
    """The tokens of a prompt: neither cached, newly cached, and read from the cache."""

    plain: int
    written: int = 0
    read: int = 0
    hour: bool = False
    """Whether what is written is kept for an hour, not for five minutes."""

    @property
    def prompt(self) -> int:
        """All tokens of the prompt."""
        return self.plain + self.written + self.read

    def so_far(self, output: int) -> dict[str, JsonValue]:
        """The running totals that end a stream."""
        return {
            "input_tokens": self.plain,
            "cache_creation_input_tokens": self.written,
            "cache_read_input_tokens": self.read,
            "output_tokens": output,
        }

    def whole(self, output: int) -> dict[str, JsonValue]:
        """The usage of a whole answer."""
        minutes, hour = (0, self.written) if self.hour else (self.written, 0)
        return {
            **self.so_far(output),
            "cache_creation": {
                "ephemeral_5m_input_tokens": minutes,
                "ephemeral_1h_input_tokens": hour,
            },
            "server_tool_use": None,
            "service_tier": "standard",
        }


def usage(body: Mapping[str, Any]) -> Usage:
    """The price of a valid request."""
    parts = list(_parts(body))
    marked = [i for i, part in enumerate(parts) if part.mark]
    end = marked[-1] + 1 if marked else 0
    answers = [i for i, part in enumerate(parts) if part.role == "assistant"]
    known = _last_run(answers) if answers else 0
    cached, read = _sum(parts[:end]), _sum(parts[: min(end, known)])
    mark = parts[end - 1].mark if marked else None
    hour = (mark or {}).get("ttl") == "1h"
    return Usage(_sum(parts) - cached, cached - read, read, hour)


def _last_run(indexes: list[int]) -> int:
    """Where the last unbroken run of numbers begins."""
    start = indexes[-1]
    while start - 1 in indexes:
        start -= 1
    return start


def _sum(parts: list[_Part]) -> int:
    return sum(part.tokens for part in parts)


def _parts(body: Mapping[str, Any]) -> Iterator[_Part]:
    parts = [*_tools(body), *_system(body), *_messages(body)]
    if parts and body.get("cache_control"):
        last = parts.pop()
        parts.append(_Part(last.tokens, body["cache_control"], last.role))
    yield from parts


def _tools(body: Mapping[str, Any]) -> Iterator[_Part]:
    for tool in body.get("tools") or ():
        yield _Part(tokens(compact(tool)), tool.get("cache_control"))


def _system(body: Mapping[str, Any]) -> Iterator[_Part]:
    system = body.get("system") or ()
    if isinstance(system, str):
        yield _Part(tokens(system))
        return
    for part in system:
        yield _Part(tokens(part["text"]), part.get("cache_control"))


def _messages(body: Mapping[str, Any]) -> Iterator[_Part]:
    for index, message in enumerate(messages_of(body)):
        role = message["role"]
        for number, block in enumerate(blocks_of(index, message)):
            frame = TOKENS_PER_MESSAGE if number == 0 else 0
            mark = block.value.get("cache_control")
            yield _Part(frame + _price(block), mark, role)


def _price(block: Block) -> int:
    if block.kind == "tool_result":
        return sum(map(tokens, result_texts(block)))
    if block.kind == "tool_use":
        made = block.value
        return tokens(made["name"]) + tokens(compact(made["input"]))
    return tokens(block.text)
