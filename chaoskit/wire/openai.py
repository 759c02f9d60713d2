"""What the scripted Chat Completions endpoint answers, as the real one writes it.

Of the real API's fields, two are fixed here: ``created`` and ``system_fingerprint``. A
clock in whole seconds would look steady in one pair of runs and move in the next.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from chaoskit.model.script import AskTurn, CallTurn, SayTurn, Turn, WaitTurn
from chaoskit.wire.json_text import compact
from chaoskit.wire.openai_conversation import call_id, calls, check_pairing, texts
from chaoskit.wire.openai_errors import Refusal
from chaoskit.wire.openai_request import check_fields

CREATED = 1_735_689_600
CHARACTERS_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 3


def refusal(body: Mapping[str, Any]) -> Refusal | None:
    """Why the real API would refuse a request; None where it would answer."""
    return next(_refusals(body), None)


def _refusals(body: Mapping[str, Any]) -> Iterator[Refusal]:
    yield from check_fields(body)
    yield from check_pairing(body["messages"])


def tokens(text: str) -> int:
    """A steady stand-in for a tokenizer: each four characters begun are one."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """The price of a valid request: its messages, and the tools it declares."""
    declared = tokens(compact(body["tools"])) if body.get("tools") else 0
    return declared + sum(map(_message_tokens, body["messages"]))


def _message_tokens(message: Mapping[str, Any]) -> int:
    said = [*texts(message), *(compact(call["function"]) for call in _made(message))]
    return TOKENS_PER_MESSAGE + sum(map(tokens, said))


def _made(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [call for call in calls(message) if "function" in call]


@dataclass(frozen=True)
class Answer:
    """What the model says at one place of the script, before it gets its ids."""

    turn: int
    content: str | None
    called: tuple[tuple[str, str], ...] = ()
    """Tools and the JSON text of their arguments."""

    @property
    def tokens(self) -> int:
        """The price of this answer."""
        made = sum(tokens(tool) + tokens(arguments) for tool, arguments in self.called)
        return tokens(self.content or "") + made

    def completion(
        self, body: Mapping[str, Any], fresh: Sequence[str]
    ) -> dict[str, JsonValue]:
        """The answer to a valid request; ``fresh`` has an id part for each choice."""
        prompt, paid = prompt_tokens(body), self.tokens * len(fresh)
        return {
            "id": f"chatcmpl-t{self.turn}-{fresh[0]}",
            "object": "chat.completion",
            "created": CREATED,
            "model": body["model"],
            "choices": [self._choice(index, part) for index, part in enumerate(fresh)],
            "usage": _usage(prompt, paid),
            "service_tier": "default",
            "system_fingerprint": "fp_chaoskit",
        }

    def _choice(self, index: int, fresh: str) -> JsonValue:
        message: dict[str, JsonValue] = {
            "role": "assistant",
            "content": self.content,
            "refusal": None,
            "annotations": [],
        }
        if self.called:
            message["tool_calls"] = [
                _call(call_id(self.turn, position, fresh), *call)
                for position, call in enumerate(self.called)
            ]
        return {
            "index": index,
            "message": message,
            "logprobs": None,
            "finish_reason": "tool_calls" if self.called else "stop",
        }


def _call(identity: str, tool: str, arguments: str) -> JsonValue:
    function: JsonValue = {"name": tool, "arguments": arguments}
    return {"id": identity, "type": "function", "function": function}


def _usage(prompt: int, completion: int) -> JsonValue:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def answer_at(script: Sequence[Turn], turn: int) -> Answer:
    """What the script says at a place; past its end, its last word again."""
    said = script[min(turn, len(script) - 1)]
    match said:
        case CallTurn():
            made = [(call.tool, compact(call.args)) for call in said.call]
        case AskTurn():
            made = [("ask_human", compact({"question": said.ask}))]
        case WaitTurn():
            whole = said.wait.is_integer()
            seconds = int(said.wait) if whole else said.wait
            made = [("wait", compact({"seconds": seconds}))]
        case SayTurn():
            return Answer(turn, said.say)
    return Answer(turn, None, tuple(made))


def model(name: str) -> dict[str, JsonValue]:
    """A model as ``GET /v1/models/NAME`` shows it; any name is served."""
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "chaoskit"}


def models(*names: str) -> dict[str, JsonValue]:
    """The list of ``GET /v1/models``."""
    return {"object": "list", "data": [model(name) for name in names]}
