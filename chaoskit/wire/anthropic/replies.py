"""What the scripted Messages endpoint answers, whole and as a stream of events.

A stream is: ``message_start``; for each block ``content_block_start``, deltas and
``content_block_stop``; ``message_delta`` with the usage and why it ended;
``message_stop``. A ``ping`` stands after the first block's start, where the real
service puts it. Protocol: Anthropic API; see `chaoskit.wire.anthropic.terms`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from chaoskit.wire.anthropic.conversation import check_conversation
from chaoskit.wire.anthropic.errors import Refusal
from chaoskit.wire.anthropic.request import check_count_fields, check_fields
from chaoskit.wire.anthropic.terms import NEWEST, Terms
from chaoskit.wire.anthropic.usage import Usage, usage
from chaoskit.wire.said import Ids, Said, pieces_of, tokens

CREATED = "2025-01-01T00:00:00Z"
Json = dict[str, JsonValue]


def refusal(body: Mapping[str, Any], terms: Terms = NEWEST) -> Refusal | None:
    """Why the real API would refuse a request; None where it would answer."""
    wrong = next(check_fields(body, terms), None)
    return wrong or next(check_conversation(body, terms), None)


def count_refusal(body: Mapping[str, Any], terms: Terms = NEWEST) -> Refusal | None:
    """The same for a request to count tokens."""
    wrong = next(check_count_fields(body, terms), None)
    return wrong or next(check_conversation(body, terms), None)


@dataclass(frozen=True)
class Answer:
    """One answer to a valid request."""

    model: str
    said: Said
    ids: Ids
    paid: Usage

    def message(self) -> Json:
        """The answer, whole."""
        return {
            **self._head(),
            "content": self._blocks(),
            "stop_reason": self.stop_reason,
            "stop_sequence": None,
            "usage": self.paid.whole(self.said.tokens),
        }

    def events(self) -> list[Json]:
        """The answer, as the events of a stream."""
        return list(self._events())

    @property
    def stop_reason(self) -> str:
        """Why it ended."""
        if self.said.cut:
            return "max_tokens"
        return "tool_use" if self.said.called else "end_turn"

    def _head(self) -> Json:
        return {
            "id": self.ids.at("msg", 0),
            "type": "message",
            "role": "assistant",
            "model": self.model,
        }

    def _blocks(self) -> list[JsonValue]:
        words: list[JsonValue] = []
        if self.said.content:
            words = [{"type": "text", "text": self.said.content}]
        return [
            *words,
            *(self._tool_use(n, *call) for n, call in enumerate(self.said.called)),
        ]

    def _tool_use(self, position: int, tool: str, arguments: str) -> Json:
        identity = self.ids.at("toolu", position)
        given = _as_object(arguments)
        return {"type": "tool_use", "id": identity, "name": tool, "input": given}

    def _events(self) -> Iterator[Json]:
        yield {"type": "message_start", "message": self._opening()}
        index = 0
        if self.said.content:
            yield from _block(index, {"type": "text", "text": ""}, self.said.content)
            index += 1
        for position, (tool, arguments) in enumerate(self.said.called):
            block = self._tool_use(position, tool, "")
            yield from _block(index, block, arguments)
            index += 1
        yield from self._closing(self.stop_reason, self.said.tokens)

    def _opening(self) -> Json:
        """The message before anything of it is said."""
        return {
            **self._head(),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self.paid.whole(1),
        }

    def _closing(self, stop_reason: str, output: int) -> Iterator[Json]:
        delta: Json = {"stop_reason": stop_reason, "stop_sequence": None}
        spent: JsonValue = self.paid.so_far(output)
        yield {"type": "message_delta", "delta": delta, "usage": spent}
        yield {"type": "message_stop"}

    def ended_after(self, sent: Sequence[Json]) -> list[Json]:
        """How a stream goes on after these events if the limit on tokens is reached."""
        kinds = [event["type"] for event in sent]
        if "message_delta" in kinds:
            return [{"type": "message_stop"}]
        opened = kinds.count("content_block_start")
        shut = kinds.count("content_block_stop")
        stop: Json = {"type": "content_block_stop", "index": opened - 1}
        output = sum(tokens(_delta_text(event)) for event in sent)
        return [
            *([stop] if opened > shut else []),
            *self._closing("max_tokens", output),
        ]


def answer(body: Mapping[str, Any], said: Said, ids: Ids) -> Answer:
    """The answer to a valid request."""
    return Answer(str(body["model"]), said, ids, usage(body))


def _as_object(arguments: str) -> JsonValue:
    """Arguments that were cut inside are none, as the API gives no half of them."""
    try:
        given: JsonValue = json.loads(arguments)
    except ValueError:
        return {}
    return given


def _block(index: int, opening: Json, text: str) -> Iterator[Json]:
    yield {"type": "content_block_start", "index": index, "content_block": opening}
    if index == 0:
        yield {"type": "ping"}
    for delta in _deltas(str(opening["type"]), text):
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _deltas(kind: str, text: str) -> Iterator[Json]:
    if kind == "text":
        for piece in pieces_of(text):
            yield {"type": "text_delta", "text": piece}
        return
    # The real service opens every block of arguments with an empty piece.
    for piece in ("", *pieces_of(text)):
        yield {"type": "input_json_delta", "partial_json": piece}


def _delta_text(event: Mapping[str, Any]) -> str:
    delta = event.get("delta") or {}
    return str(delta.get("text") or delta.get("partial_json") or "")


def model(name: str) -> Json:
    """A model as ``GET /v1/models/NAME`` shows it; any name is served."""
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": CREATED,
        "lifecycle": "active",
    }


def models(*names: str) -> Json:
    """The list of ``GET /v1/models``: one page."""
    return {
        "data": [model(name) for name in names],
        "has_more": False,
        "first_id": names[0],
        "last_id": names[-1],
    }
