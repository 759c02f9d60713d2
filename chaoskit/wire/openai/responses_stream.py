"""Responses, streamed: every event that an answer of words, calls and thoughts has.

Each event carries its number, from 0 without gaps; the last one holds the whole answer.
There is no ``[DONE]``. A stream that breaks says so twice, as the service does: by
``error``, with the error inside, and by ``response.failed``, with what there was.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

from pydantic import JsonValue

from chaoskit.wire import sse
from chaoskit.wire.openai.faults import ServiceError
from chaoskit.wire.openai.responses import (
    Items,
    incomplete,
    output,
    response,
    text_part,
    usage,
    whole,
)
from chaoskit.wire.said import Ids, Said, pieces_of

Event = dict[str, JsonValue]
_ERROR_CODES = ("rate_limit_exceeded", "server_error")
"""Those of ``response.error`` that the API names; others count as server errors."""


@dataclass(frozen=True)
class Stream:
    """One answer to a valid request whose price is known."""

    body: Mapping[str, Any]
    said: Said
    ids: Ids
    prompt: int

    def events(self) -> tuple[bytes, ...]:
        """The answer as events, the last one included."""
        return tuple(map(_written, self._numbered()))

    def at_limit(self, sent: int) -> bytes:
        """How a stream ends whose limit on tokens was reached after some events."""
        paid: JsonValue = usage(self.body, self.said, self.prompt).of_responses()
        seen = _so_far(self._numbered()[:sent])
        last = incomplete(self.body, self.ids, seen, paid)
        return _written(_ending("response.incomplete", last, sent))

    def broken(self, sent: int, error: ServiceError) -> bytes:
        """How a stream ends in which the service broke down after some events."""
        told = cast(Event, error.body(self.ids.request)["error"])
        code = error.code if error.code in _ERROR_CODES else "server_error"
        why: JsonValue = {"code": code, "message": told["message"]}
        seen = _so_far(self._numbered()[:sent])
        last = response(self.body, self.ids, "failed", seen, error=why)
        first: Event = {"type": "error", "error": told, "sequence_number": sent}
        failed = _ending("response.failed", last, sent + 1)
        return _written(first) + _written(failed)

    def _numbered(self) -> list[Event]:
        numbers = count()
        return [{**event, "sequence_number": next(numbers)} for event in self._all()]

    def _all(self) -> Iterator[Event]:
        begun: JsonValue = response(self.body, self.ids, "in_progress")
        yield {"type": "response.created", "response": begun}
        yield {"type": "response.in_progress", "response": begun}
        for index, item in enumerate(output(self.body, self.said, self.ids)):
            yield from _item_events(index, item)
        kind = "incomplete" if self.said.cut else "completed"
        last: JsonValue = whole(self.body, self.said, self.ids, self.prompt)
        yield {"type": f"response.{kind}", "response": last}


def _ending(kind: str, last: Event, number: int) -> Event:
    return {"type": kind, "response": last, "sequence_number": number}


def _written(event: Event) -> bytes:
    return sse.event(event, str(event["type"]))


def _item_events(index: int, item: Event) -> Iterator[Event]:
    at: Event = {"output_index": index}
    inner: Event = {"item_id": item["id"], **at}
    yield {"type": "response.output_item.added", **at, "item": _begun(item)}
    match item["type"]:
        case "message":
            yield from _words(inner, item)
        case "function_call":
            yield from _arguments(inner, str(item["arguments"]))
        case "reasoning":
            yield from _thoughts(inner, item)
    yield {"type": "response.output_item.done", **at, "item": item}


def _begun(item: Event) -> Event:
    """The item as it is announced: nothing in it yet."""
    match item["type"]:
        case "message":
            return {**item, "status": "in_progress", "content": []}
        case "function_call":
            return {**item, "status": "in_progress", "arguments": ""}
        case _:
            return {**item, "summary": []}


def _words(inner: Event, item: Event) -> Iterator[Event]:
    at: Event = {**inner, "content_index": 0}
    (part,) = cast(Sequence[Event], item["content"])
    kind, text = "response.output_text", str(part["text"])
    empty: JsonValue = text_part("")
    yield {"type": "response.content_part.added", **at, "part": empty}
    for piece in pieces_of(text):
        yield {"type": f"{kind}.delta", **at, "delta": piece, "logprobs": []}
    if item["status"] == "completed":
        yield {"type": f"{kind}.done", **at, "text": text, "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}


def _arguments(inner: Event, arguments: str) -> Iterator[Event]:
    kind = "response.function_call_arguments"
    for piece in pieces_of(arguments):
        yield {"type": f"{kind}.delta", **inner, "delta": piece}
    yield {"type": f"{kind}.done", **inner, "arguments": arguments}


def _thoughts(inner: Event, item: Event) -> Iterator[Event]:
    kind = "response.reasoning_summary"
    for index, part in enumerate(cast(Sequence[Event], item["summary"])):
        at: Event = {**inner, "summary_index": index}
        text = str(part["text"])
        yield {"type": f"{kind}_part.added", **at, "part": {**part, "text": ""}}
        for piece in pieces_of(text):
            yield {"type": f"{kind}_text.delta", **at, "delta": piece}
        yield {"type": f"{kind}_text.done", **at, "text": text}
        yield {"type": f"{kind}_part.done", **at, "part": part}


def _so_far(events: Sequence[Event]) -> Items:
    """The items as far as these events have told them."""
    items: dict[int, Any] = {}
    for event in events:
        kind = str(event["type"]).removeprefix("response.")
        index = cast(int, event.get("output_index", -1))
        match kind:
            case "output_item.added" | "output_item.done":
                items[index] = copy.deepcopy(event["item"])
            case "content_part.added":
                items[index]["content"] = [text_part("")]
            case "output_text.delta":
                items[index]["content"][0]["text"] += event["delta"]
            case "function_call_arguments.delta":
                items[index]["arguments"] += event["delta"]
    return [_not_whole(item) for item in items.values()]


def _not_whole(item: Event) -> Event:
    if item.get("status") != "in_progress":
        return item
    return {**item, "status": "incomplete"}
