"""A conversation in Responses: its items, and where it stands.

Items come from the request, and from answers that the service kept: behind
``previous_response_id`` stand all items that led to that answer, and its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chaoskit.wire.json_text import compact
from chaoskit.wire.openai.responses_input import (
    CALL,
    MESSAGE,
    REASONING,
    REFERENCE,
    RESULT,
)
from chaoskit.wire.openai.usage import TOKENS_PER_MESSAGE
from chaoskit.wire.place import Made, Place, began
from chaoskit.wire.said import tokens

Item = Mapping[str, Any]
Kept = Mapping[str, Any]
"""Answers that the service kept, by id: ``items`` that led to it, and ``response``."""


def listed(value: object) -> list[Item]:
    """The input of a request as items, as far as it looks like some."""
    if isinstance(value, str):
        return [{"type": MESSAGE, "role": "user", "content": value}]
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def conversation(body: Mapping[str, Any], kept: Kept) -> list[Item]:
    """Every item that the model is shown, those behind earlier answers first."""
    before = before_this(body.get("previous_response_id"), kept)
    return [*before, *(_resolved(item, kept) for item in listed(body.get("input")))]


def before_this(response: object, kept: Kept) -> list[Item]:
    """The items behind an answer, and its own; none where it was not kept."""
    if not isinstance(response, str) or response not in kept:
        return []
    earlier = kept[response]
    return [*earlier["items"], *earlier["response"]["output"]]


def _resolved(item: Item, kept: Kept) -> Item:
    if item.get("type") != REFERENCE:
        return item
    return next((each for each in _all(kept) if each["id"] == item.get("id")), item)


def _all(kept: Kept) -> Iterator[Item]:
    for earlier in kept.values():
        yield from earlier["response"]["output"]


def texts(item: Item) -> tuple[str, ...]:
    """What an item says in words, part by part."""
    said = (item.get(field) for field in ("content", "output", "summary"))
    parts = (part for each in said for part in _parts(each))
    words = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return tuple(text for text in words if isinstance(text, str) and text)


def _parts(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def item_tokens(item: Item) -> int:
    """The price of an item of a valid request."""
    made = [compact([item["name"], item["arguments"]])] if is_a(CALL, item) else []
    return TOKENS_PER_MESSAGE + sum(map(tokens, (*texts(item), *made)))


def is_a(kind: str, item: Item) -> bool:
    """Whether an item is of a kind."""
    return bool(item.get("type", MESSAGE) == kind)


def is_the_models(item: Item) -> bool:
    """Whether the model made it."""
    if is_a(MESSAGE, item):
        return item.get("role") == "assistant"
    return is_a(CALL, item) or is_a(REASONING, item)


def place(items: Sequence[Item], goal: str) -> Place:
    """Where the conversation stands; works on broken ones too, as well as may be.

    Items of the model that follow one another are one turn of it.
    """
    users = (
        (index, "\n".join(texts(item)))
        for index, item in enumerate(items)
        if is_a(MESSAGE, item) and item.get("role") == "user"
    )
    found, turn = Place(), list[Item]()
    for item in items[began(goal, users) :]:
        if is_the_models(item):
            turn.append(item)
            continue
        _take(found, turn)
        turn = []
        if is_a(RESULT, item):
            found.result(item.get("call_id"), texts(item))
    _take(found, turn)
    return found


def _take(found: Place, turn: Sequence[Item]) -> None:
    if turn:
        calls = [_made(item) for item in turn if is_a(CALL, item)]
        found.answered(calls, [item.get("id") for item in turn])


def _made(item: Item) -> Made:
    return Made(item.get("call_id"), item.get("name"), item.get("arguments"))
