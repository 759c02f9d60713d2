"""Responses: what the scripted model says, as the real endpoint writes it.

An answer is a list of items: what was thought (where the request asks for an effort),
a message, and calls. Streams are `chaoskit.wire.openai.responses_stream`'s.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from chaoskit.wire.json_text import compact
from chaoskit.wire.openai.errors import Refusal
from chaoskit.wire.openai.models import CREATED
from chaoskit.wire.openai.responses_items import Kept, conversation, item_tokens
from chaoskit.wire.openai.responses_pairing import check_items
from chaoskit.wire.openai.responses_request import check_fields
from chaoskit.wire.openai.usage import Usage, reasoning_tokens
from chaoskit.wire.said import Ids, Said, tokens

THOUGHT = "Following the script."
"""What the model shows of its thoughts, where a summary is asked for."""
_ENCRYPTED = "reasoning.encrypted_content"
Items = list[dict[str, JsonValue]]


def refusal(body: Mapping[str, Any], kept: Kept) -> Refusal | None:
    """Why the real API would refuse a request; None where it would answer."""
    return next(_refusals(body, kept), None)


def _refusals(body: Mapping[str, Any], kept: Kept) -> Iterator[Refusal]:
    yield from check_fields(body)
    yield from check_items(body, kept)


def prompt_tokens(body: Mapping[str, Any], kept: Kept) -> int:
    """The price of a valid request: its items, what is behind it, and its tools."""
    declared = compact(body["tools"]) if body.get("tools") else ""
    given = (body.get("instructions") or "", declared)
    return sum(map(tokens, given)) + sum(map(item_tokens, conversation(body, kept)))


def thought_tokens(body: Mapping[str, Any]) -> int:
    """What the answer is thought over with."""
    return reasoning_tokens((body.get("reasoning") or {}).get("effort"))


def usage(body: Mapping[str, Any], said: Said, prompt: int) -> Usage:
    """What a valid request and its answer cost."""
    thought = thought_tokens(body)
    return Usage(prompt, said.tokens + thought, thought)


def output(body: Mapping[str, Any], said: Said, ids: Ids) -> Items:
    """The items of an answer, complete unless it was cut."""
    items: Items = []
    if thought_tokens(body):
        items.append(_thought(body, ids))
    if said.content is not None:
        items.append(_message(ids.at("msg", 0), said.content))
    for position, (tool, arguments) in enumerate(said.called):
        call = {
            "id": ids.at("fc", position),
            "type": "function_call",
            "status": "completed",
            "arguments": arguments,
            "call_id": ids.at("call", position),
            "name": tool,
        }
        items.append(dict[str, JsonValue](call))
    if said.cut and items:
        items[-1]["status"] = "incomplete"
    return items


def _thought(body: Mapping[str, Any], ids: Ids) -> dict[str, JsonValue]:
    shown = (body.get("reasoning") or {}).get("summary") is not None
    summary: list[JsonValue] = [{"type": "summary_text", "text": THOUGHT}]
    item: dict[str, JsonValue] = {
        "id": ids.at("rs", 0),
        "type": "reasoning",
        "summary": summary if shown else [],
    }
    if _ENCRYPTED in (body.get("include") or ()):
        sealed = hashlib.sha256(ids.fresh[0].encode()).hexdigest()
        item["encrypted_content"] = f"gAAAAA{sealed}"
    return item


def _message(identity: str, text: str) -> dict[str, JsonValue]:
    return {
        "id": identity,
        "type": "message",
        "status": "completed",
        "content": [text_part(text)],
        "role": "assistant",
    }


def text_part(text: str) -> dict[str, JsonValue]:
    """The part of a message that holds its words."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def response_id(ids: Ids) -> str:
    """The id of the whole answer."""
    return ids.at("resp", 0)


def response(
    body: Mapping[str, Any],
    ids: Ids,
    status: str,
    items: Sequence[Mapping[str, JsonValue]] = (),
    **changes: JsonValue,
) -> dict[str, JsonValue]:
    """The answer as one object, in one of its states."""
    done = status == "completed"
    return {
        "id": response_id(ids),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": False,
        "completed_at": CREATED if done else None,
        "error": None,
        "incomplete_details": None,
        **_echoed(body),
        "output": [dict(item) for item in items],
        "service_tier": "auto" if status == "in_progress" else "default",
        "usage": None,
        **changes,
    }


def whole(
    body: Mapping[str, Any], said: Said, ids: Ids, prompt: int
) -> dict[str, JsonValue]:
    """The answer to a valid request, as one object."""
    paid: JsonValue = usage(body, said, prompt).of_responses()
    items = output(body, said, ids)
    if said.cut:
        return incomplete(body, ids, items, paid)
    return response(body, ids, "completed", items, usage=paid)


def incomplete(
    body: Mapping[str, Any], ids: Ids, items: Items, paid: JsonValue
) -> dict[str, JsonValue]:
    """An answer whose limit on tokens was reached."""
    why: JsonValue = {"reason": "max_output_tokens"}
    return response(body, ids, "incomplete", items, incomplete_details=why, usage=paid)


_DEFAULTS: Mapping[str, JsonValue] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "prompt_cache_retention": None,
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


def _echoed(body: Mapping[str, Any]) -> dict[str, JsonValue]:
    """What the answer repeats of the request, with the defaults filled in."""
    given = {name: body[name] for name in _DEFAULTS if body.get(name) is not None}
    text = {
        "format": {"type": "text"},
        "verbosity": "medium",
        **(body.get("text") or {}),
    }
    thinking = {"effort": None, "summary": None, **(body.get("reasoning") or {})}
    return {
        "model": body["model"],
        **_DEFAULTS,
        **given,
        "frequency_penalty": 0.0,
        "presence_penalty": 0.0,
        "reasoning": thinking,
        "text": text,
    }
