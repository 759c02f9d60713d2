"""A conversation: whether it holds together, and how far it has come.

The model answers from the conversation alone, never from a counter: the place in the
script is the number of assistant turns since the task began. Ids that we issued say
where they belong, so a history that was cut short or summed up still finds its place.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaoskit.wire.openai_errors import Refusal
from chaoskit.wire.openai_rules import Refusals

Message = Mapping[str, Any]
_OURS = re.compile(r"call_t(\d{1,6})p(\d{1,6})_[0-9a-z]+")


def call_id(turn: int, position: int, fresh: str) -> str:
    """The id of a call that the model makes; it carries its place in the script."""
    return f"call_t{turn}p{position}_{fresh}"


def without_fresh_part(text: str) -> str:
    """The text with our ids cut down to their places: the same in every run."""
    return _OURS.sub(lambda found: found[0].rpartition("_")[0], text)


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


@dataclass
class Place:
    """How far a conversation has come.

    ``turn`` is the place in the script that its answer comes from; ``carried`` names
    the calls, as ``turn.position``, whose results it holds.
    """

    turn: int = 0
    carried: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def take(self, message: Message) -> None:
        """Go past one message."""
        if message.get("role") == "assistant":
            self._answered(calls(message))
        elif message.get("role") == "tool":
            name = self._name(message.get("tool_call_id"))
            if name is not None and name not in self.carried:
                self.carried.append(name)

    def _answered(self, made: Sequence[Mapping[str, Any]]) -> None:
        places = [place for call in made if (place := _issued(call.get("id")))]
        if places:
            self.turn = places[-1][0]
        for position, call in enumerate(made):
            self._names[str(call.get("id"))] = f"{self.turn}.{position}"
        self.turn += 1

    def _name(self, identity: object) -> str | None:
        if ours := _issued(identity):
            return "{}.{}".format(*ours)
        return self._names.get(str(identity))


def _issued(identity: object) -> tuple[int, int] | None:
    found = _OURS.fullmatch(identity) if isinstance(identity, str) else None
    return None if found is None else (int(found[1]), int(found[2]))


def place(messages: Sequence[Message], goal: str) -> Place:
    """Where the conversation stands; works on broken ones too, as well as may be.

    The task began at the first message of the user that holds the goal, else at the
    user's first message.
    """
    began = [i for i, m in enumerate(messages) if m.get("role") == "user"]
    named = [i for i in began if goal in "\n".join(texts(messages[i]))]
    found = Place()
    for message in messages[(named or began or [0])[0] :]:
        found.take(message)
    return found


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
