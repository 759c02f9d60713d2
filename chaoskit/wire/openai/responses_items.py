"""A conversation in Responses: its items, whether they hold together, where it stands.

Items come from the request, and from answers that the service kept: behind
``previous_response_id`` stand all items that led to that answer, and its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from chaoskit.wire.json_text import compact
from chaoskit.wire.openai.errors import Refusal
from chaoskit.wire.openai.responses_input import (
    CALL,
    MESSAGE,
    REASONING,
    REFERENCE,
    RESULT,
)
from chaoskit.wire.openai.rules import Refusals
from chaoskit.wire.openai.usage import TOKENS_PER_MESSAGE
from chaoskit.wire.place import Place, began
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
    made = [compact([item["name"], item["arguments"]])] if _is(CALL, item) else []
    return TOKENS_PER_MESSAGE + sum(map(tokens, (*texts(item), *made)))


def _is(kind: str, item: Item) -> bool:
    return bool(item.get("type", MESSAGE) == kind)


def _is_the_models(item: Item) -> bool:
    if _is(MESSAGE, item):
        return item.get("role") == "assistant"
    return _is(CALL, item) or _is(REASONING, item)


def place(items: Sequence[Item], goal: str) -> Place:
    """Where the conversation stands; works on broken ones too, as well as may be.

    Items of the model that follow one another are one turn of it.
    """
    users = (
        (index, "\n".join(texts(item)))
        for index, item in enumerate(items)
        if _is(MESSAGE, item) and item.get("role") == "user"
    )
    found, turn = Place(), list[Item]()
    for item in items[began(goal, users) :]:
        if _is_the_models(item):
            turn.append(item)
            continue
        _take(found, turn)
        turn = []
        if _is(RESULT, item):
            found.result(item.get("call_id"))
    _take(found, turn)
    return found


def _take(found: Place, turn: Sequence[Item]) -> None:
    if turn:
        calls = [item.get("call_id") for item in turn if _is(CALL, item)]
        found.answered(calls, [item.get("id") for item in turn])


def check_items(body: Mapping[str, Any], kept: Kept) -> Refusals:
    """What is wrong between items. Expects a body whose fields are in order."""
    previous = body.get("previous_response_id")
    if previous is not None and previous not in kept:
        yield Refusal(
            f"Previous response with id '{previous}' not found.",
            "previous_response_id",
            "previous_response_not_found",
        )
    items = conversation(body, kept)
    yield from _no_stranger(items)
    yield from _no_double(items)
    yield from _paired(items)
    yield from _with_reasoning(items, kept)


def _id_of(item: Item) -> str | None:
    """Its id, which items that are taken unseen may hold anything as."""
    identity = item.get("id")
    return identity if isinstance(identity, str) else None


def _no_stranger(items: Sequence[Item]) -> Refusals:
    for item in items:
        if _is(REFERENCE, item):
            yield Refusal(
                f"Item with id '{item['id']}' not found. Items are not persisted when "
                "`store` is set to false. Try again with `store` set to true, or "
                "remove this item from your input.",
                "input",
                status=404,
            )


def _no_double(items: Sequence[Item]) -> Refusals:
    seen: set[str] = set()
    for identity in filter(None, map(_id_of, items)):
        if identity in seen:
            yield Refusal(
                f"Duplicate item found with id {identity}. Remove duplicate items from "
                "your input and try again.",
                "input",
            )
        seen.add(identity)


def _paired(items: Sequence[Item]) -> Refusals:
    called = [item["call_id"] for item in items if _is(CALL, item)]
    answered = [item["call_id"] for item in items if _is(RESULT, item)]
    for call in called:
        if call not in answered:
            yield Refusal(f"No tool output found for function call {call}.", "input")
    for call in answered:
        if call not in called:
            problem = "No tool call found for function call output with call_id"
            yield Refusal(f"{problem} {call}.", "input")
        if called.count(call) < answered.count(call):
            problem = "Duplicate function call output found for call_id"
            yield Refusal(f"{problem} {call}.", "input")


def _with_reasoning(items: Sequence[Item], kept: Kept) -> Refusals:
    """What was thought and what came of it go together, in that order."""
    for item, after in pairwise([*items, {}]):
        if _is(REASONING, item) and not (after and _is_the_models(after)):
            yield Refusal(
                f"Item '{item['id']}' of type 'reasoning' was provided without its "
                "required following item.",
                "input",
            )
    there = set(map(_id_of, items))
    needs = {
        item["id"]: output[0]["id"]
        for output in (earlier["response"]["output"] for earlier in kept.values())
        for item in output[1:2]
        if _is(REASONING, output[0])
    }
    for item in items:
        thought = needs.get(_id_of(item))
        if thought is not None and thought not in there:
            yield Refusal(
                f"Item '{item['id']}' of type '{item.get('type', MESSAGE)}' was "
                f"provided without its required 'reasoning' item: '{thought}'.",
                "input",
            )
