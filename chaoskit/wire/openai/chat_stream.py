"""Chat Completions, streamed: chunks, and how a stream ends that something cuts.

A choice begins with its role. Its words come in pieces; a call comes with its id, its
name and no arguments, then its arguments in pieces, cut where they may hurt: inside a
name, a string, a number. Then comes why it ended, what it cost if that was asked for,
and ``[DONE]``. Each is one event of its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from chaoskit.wire import sse
from chaoskit.wire.openai.chat import (
    FINGERPRINT,
    TIER,
    completion_id,
    finish_reason,
    usage,
)
from chaoskit.wire.openai.models import CREATED
from chaoskit.wire.said import Ids, Said, pieces_of

DONE = sse.event("[DONE]")


def events(body: Mapping[str, Any], said: Said, ids: Ids) -> tuple[bytes, ...]:
    """The answer to a valid request as events, the last one included."""
    stream = _Stream(body, said, ids)
    deltas = (
        stream.chunk(index, delta)
        for index in range(len(ids.fresh))
        for delta in stream.deltas(index)
    )
    return (*deltas, *stream.ends(finish_reason(said)))


def at_limit(body: Mapping[str, Any], said: Said, ids: Ids) -> bytes:
    """How a stream ends whose limit on tokens was reached in its middle."""
    return b"".join(_Stream(body, said, ids).ends("length"))


def tail(body: Mapping[str, Any]) -> int:
    """How many events come after the one that says why the answer ended."""
    return 1 + _with_usage(body)


def _with_usage(body: Mapping[str, Any]) -> bool:
    return bool((body.get("stream_options") or {}).get("include_usage"))


@dataclass(frozen=True)
class _Stream:
    body: Mapping[str, Any]
    said: Said
    ids: Ids

    @property
    def with_usage(self) -> bool:
        return _with_usage(self.body)

    def deltas(self, index: int) -> Iterator[dict[str, JsonValue]]:
        words = self.said.content
        begun = "" if words is not None else None
        yield {"role": "assistant", "content": begun, "refusal": None}
        for piece in pieces_of(words or ""):
            yield {"content": piece}
        for position, (tool, arguments) in enumerate(self.said.called):
            yield {"tool_calls": [self._begun(index, position, tool)]}
            for piece in pieces_of(arguments):
                more: JsonValue = {"arguments": piece}
                yield {"tool_calls": [{"index": position, "function": more}]}

    def _begun(self, index: int, position: int, tool: str) -> JsonValue:
        return {
            "index": position,
            "id": self.ids.at("call", position, index),
            "type": "function",
            "function": {"name": tool, "arguments": ""},
        }

    def ends(self, reason: str) -> Iterator[bytes]:
        count = len(self.ids.fresh)
        for index in range(count):
            yield self.chunk(index, {}, reason)
        if self.with_usage:
            yield self._event([], usage(self.body, self.said, count).of_chat())
        yield DONE

    def chunk(
        self, index: int, delta: dict[str, JsonValue], reason: str | None = None
    ) -> bytes:
        choice: JsonValue = {
            "index": index,
            "delta": delta,
            "logprobs": None,
            "finish_reason": reason,
        }
        return self._event([choice], None)

    def _event(
        self, choices: list[JsonValue], usage: dict[str, JsonValue] | None
    ) -> bytes:
        whole: dict[str, JsonValue] = {
            "id": completion_id(self.ids),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.body["model"],
            "service_tier": TIER,
            "system_fingerprint": FINGERPRINT,
            "choices": choices,
        }
        return sse.event(whole | ({"usage": usage} if self.with_usage else {}))
