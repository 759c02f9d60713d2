"""Whether the items of a Responses request hold together."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from chaoskit.wire.openai.errors import Refusal
from chaoskit.wire.openai.responses_input import (
    CALL,
    MESSAGE,
    REASONING,
    REFERENCE,
    RESULT,
)
from chaoskit.wire.openai.responses_items import (
    Item,
    Kept,
    conversation,
    is_a,
    is_the_models,
)
from chaoskit.wire.openai.rules import Refusals


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
        if is_a(REFERENCE, item):
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
    called = [item["call_id"] for item in items if is_a(CALL, item)]
    answered = [item["call_id"] for item in items if is_a(RESULT, item)]
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
        if is_a(REASONING, item) and not (after and is_the_models(after)):
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
        if is_a(REASONING, output[0])
    }
    for item in items:
        thought = needs.get(_id_of(item))
        if thought is not None and thought not in there:
            yield Refusal(
                f"Item '{item['id']}' of type '{item.get('type', MESSAGE)}' was "
                f"provided without its required 'reasoning' item: '{thought}'.",
                "input",
            )
