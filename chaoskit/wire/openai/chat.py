"""Chat Completions: what the scripted model says, as the real endpoint writes it.

Of the real API's fields, two are fixed: ``created`` and ``system_fingerprint``. Streams
are `chaoskit.wire.openai.chat_stream`'s.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from chaoskit.wire.json_text import compact
from chaoskit.wire.openai.chat_conversation import calls, check_pairing, texts
from chaoskit.wire.openai.chat_request import check_fields
from chaoskit.wire.openai.errors import Refusal
from chaoskit.wire.openai.models import CREATED
from chaoskit.wire.openai.usage import TOKENS_PER_MESSAGE, Usage, reasoning_tokens
from chaoskit.wire.said import Ids, Said, tokens

FINGERPRINT = "fp_chaoskit"
TIER = "default"


def refusal(body: Mapping[str, Any]) -> Refusal | None:
    """Why the real API would refuse a request; None where it would answer."""
    return next(_refusals(body), None)


def _refusals(body: Mapping[str, Any]) -> Iterator[Refusal]:
    yield from check_fields(body)
    yield from check_pairing(body["messages"])


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """The price of a valid request: its messages, and the tools it declares."""
    declared = tokens(compact(body["tools"])) if body.get("tools") else 0
    return declared + sum(map(_message_tokens, body["messages"]))


def _message_tokens(message: Mapping[str, Any]) -> int:
    said = [*texts(message), *(compact(call["function"]) for call in _made(message))]
    return TOKENS_PER_MESSAGE + sum(map(tokens, said))


def _made(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [call for call in calls(message) if "function" in call]


def reasoning(body: Mapping[str, Any]) -> int:
    """The tokens that each alternative of an answer is thought over with."""
    return reasoning_tokens(body.get("reasoning_effort"))


def usage(body: Mapping[str, Any], said: Said, choices: int) -> Usage:
    """What a valid request and its answer cost."""
    thought = reasoning(body) * choices
    return Usage(prompt_tokens(body), said.tokens * choices + thought, thought)


def completion(body: Mapping[str, Any], said: Said, ids: Ids) -> dict[str, JsonValue]:
    """The answer to a valid request, as one object."""
    choices = range(len(ids.fresh))
    return {
        "id": completion_id(ids),
        "object": "chat.completion",
        "created": CREATED,
        "model": body["model"],
        "choices": [_choice(said, ids, index) for index in choices],
        "usage": usage(body, said, len(choices)).of_chat(),
        "service_tier": TIER,
        "system_fingerprint": FINGERPRINT,
    }


def completion_id(ids: Ids) -> str:
    """The id of the whole answer, which no later request repeats."""
    return f"chatcmpl-t{ids.turn}-{ids.fresh[0]}"


def finish_reason(said: Said) -> str:
    """Why the answer ended."""
    if said.cut:
        return "length"
    return "tool_calls" if said.called else "stop"


def _choice(said: Said, ids: Ids, index: int) -> JsonValue:
    message: dict[str, JsonValue] = {
        "role": "assistant",
        "content": said.content,
        "refusal": None,
        "annotations": [],
    }
    if said.called:
        message["tool_calls"] = [
            _call(ids.at("call", position, index), *call)
            for position, call in enumerate(said.called)
        ]
    return {
        "index": index,
        "message": message,
        "logprobs": None,
        "finish_reason": finish_reason(said),
    }


def _call(identity: str, tool: str, arguments: str) -> JsonValue:
    function: JsonValue = {"name": tool, "arguments": arguments}
    return {"id": identity, "type": "function", "function": function}
