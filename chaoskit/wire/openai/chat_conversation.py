"""A conversation in Chat Completions: whether it holds, and where it stands."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaoskit.wire.openai.errors import Refusal
from chaoskit.wire.openai.rules import Refusals
from chaoskit.wire.place import Made, Place, began

Message = Mapping[str, Any]


def texts(message: Message) -> tuple[str, ...]:
    """What a message says in words, part by part."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    said = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return tuple(text for text in said if isinstance(text, str) and text)


def calls(message: Message) -> list[Mapping[str, Any]]:
    """The tool calls of a message, as far as they look like ones."""
    listed = message.get("tool_calls")
    found = listed if isinstance(listed, list) else []
    return [call for call in found if isinstance(call, dict)]


def place(messages: Sequence[Message], goal: str) -> Place:
    """Where the conversation stands; works on broken ones too, as well as may be."""
    users = (
        (index, "\n".join(texts(message)))
        for index, message in enumerate(messages)
        if message.get("role") == "user"
    )
    found = Place()
    for message in messages[began(goal, users) :]:
        if message.get("role") == "assistant":
            found.answered([*map(_made, calls(message))])
        elif message.get("role") == "tool":
            found.result(message.get("tool_call_id"), texts(message))
    return found


def _made(call: Mapping[str, Any]) -> Made:
    called = call.get("function")
    called = called if isinstance(called, dict) else {}
    return Made(call.get("id"), called.get("name"), called.get("arguments"))


def check_pairing(messages: Sequence[Message]) -> Refusals:
    """What is wrong between messages, in the order of the conversation.

    Expects messages whose fields were found to be in order.
    """
    block = _Block()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            yield from block.answer(index, message)
            continue
        yield from block.close(f"messages.[{index}].role")
        block = _Block(index, [str(call["id"]) for call in calls(message)])
        yield from block.check()
    yield from block.close("messages")
    yield from _check_contents(messages)


@dataclass
class _Block:
    """An assistant's calls and the results that follow them at once."""

    index: int = 0
    ids: list[str] = field(default_factory=list)
    answered: dict[str, int] = field(default_factory=dict)

    def check(self) -> Refusals:
        for identity in self.ids:
            if self.ids.count(identity) > 1:
                yield Refusal(
                    f"Invalid parameter: Duplicate value for 'tool_call_id' of "
                    f"'{identity}' in messages[{self.index}].",
                    f"messages.[{self.index}].tool_calls",
                )

    def answer(self, index: int, message: Message) -> Refusals:
        identity, here = message.get("tool_call_id"), f"messages.[{index}]"
        if not self.ids:
            yield Refusal(_NO_CALL, f"{here}.role")
        if identity is None:
            yield Refusal(_NO_ID, f"{here}.tool_call_id")
        if identity not in self.ids:
            problem = f"'{identity}' not found in 'tool_calls' of previous message."
            yield Refusal(_OF_ID + problem, f"{here}.tool_call_id")
        if identity in self.answered:
            yield Refusal(
                f"Invalid parameter: Duplicate value for 'tool_call_id' of "
                f"'{identity}', in messages[{self.answered[identity]}] and "
                f"messages[{index}].",
                f"{here}.tool_call_id",
            )
        self.answered[str(identity)] = index

    def close(self, param: str) -> Refusals:
        left = [identity for identity in self.ids if identity not in self.answered]
        if left:
            yield Refusal(_NO_RESULT + ", ".join(left), param)


_NO_CALL = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
    "message with 'tool_calls'."
)
_NO_ID = (
    "Missing parameter 'tool_call_id': messages with role 'tool' must have a "
    "'tool_call_id'."
)
_OF_ID = "Invalid parameter: 'tool_call_id' of "
_NO_RESULT = (
    "An assistant message with 'tool_calls' must be followed by tool messages "
    "responding to each 'tool_call_id'. The following tool_call_ids did not have "
    "response messages: "
)
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")


def _check_contents(messages: Sequence[Message]) -> Iterator[Refusal]:
    for index, message in enumerate(messages):
        assistant = message["role"] == "assistant"
        spoken = assistant and any(message.get(f) for f in _INSTEAD_OF_CONTENT)
        if message.get("content") is None and not spoken:
            yield Refusal(
                "Invalid value for 'content': expected a string, got null.",
                f"messages.[{index}].content",
            )
