"""A conversation of the Messages API: does it hold together, how far has it come?"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any

from chaoskit.wire.anthropic.blocks import (
    Block,
    Message,
    Turn,
    blocks_of,
    messages_of,
    result_texts,
    turns_of,
)
from chaoskit.wire.anthropic.errors import Refusal, Refusals, at
from chaoskit.wire.anthropic.terms import Terms
from chaoskit.wire.place import Made, Place, began

_ONLY_IN = {"tool_result": "user", "tool_use": "assistant"}
_ONLY_IN_NEWEST = {"document": "user"}


def place(body: Mapping[str, Any], goal: str) -> Place:
    """Where the conversation stands; works on broken ones too, as well as may be."""
    turns = turns_of(messages_of(body))
    users = ((i, _spoken(turn)) for i, turn in enumerate(turns) if turn.role == "user")
    found = Place()
    for turn in turns[began(goal, users) :]:
        if turn.role == "assistant":
            found.answered([*map(_made, turn.of("tool_use"))])
        for block in turn.of("tool_result"):
            found.result(block.value.get("tool_use_id"), result_texts(block))
    return found


def _made(block: Block) -> Made:
    return Made(*map(block.value.get, ("id", "name", "input")))


def _spoken(turn: Turn) -> str:
    return "\n".join(block.text for block in turn.blocks)


def check_conversation(body: Mapping[str, Any], terms: Terms) -> Refusals:
    """What is wrong between messages, in the order in which the API looks.

    Expects messages whose fields were found to be in order.
    """
    messages = messages_of(body)
    yield from _check_roles(messages)
    yield from _check_words(body, messages)
    if terms.newest:
        yield from _check_placed(messages)
    turns = turns_of(messages)
    yield from _check_unique(turns)
    yield from _check_pairs(turns)
    if turns[-1].role == "assistant":
        yield Refusal(
            "This model does not support assistant message prefill. The conversation "
            "must end with a user message."
        )


def _check_roles(messages: Sequence[Message]) -> Refusals:
    roles = [message["role"] for message in messages]
    if roles[0] == "system":
        problem = "use the top-level 'system' parameter for the initial system prompt"
        yield at("messages.0", problem)
    if roles[0] != "user":
        yield at("messages", 'first message must use the "user" role')
    for index, (before, role) in enumerate(pairwise(roles), 1):
        after = roles[index + 1] if index + 1 < len(roles) else "assistant"
        if role == "system" and (before, after) != ("user", "assistant"):
            yield at(
                f"messages.{index}",
                "a message with role 'system' must immediately follow a user message, "
                "and must be the last one or be followed by an assistant message",
            )


def _check_words(body: Mapping[str, Any], messages: Sequence[Message]) -> Refusals:
    for index, message in enumerate(messages):
        last = index == len(messages) - 1 and message["role"] == "assistant"
        if not message["content"] and not last:
            yield at(
                f"messages.{index}",
                "all messages must have non-empty content except for the optional "
                "final assistant message",
            )
        for block in blocks_of(index, message):
            yield from _check_block(block, message["role"])
    system = body.get("system")
    parts = system if isinstance(system, list) else []
    for part in parts:
        yield from _check_text("system", part["text"])


def _check_placed(messages: Sequence[Message]) -> Refusals:
    """What the newest version forbids, and those before it did not."""
    for index, message in enumerate(messages):
        for block in blocks_of(index, message):
            yield from _check_role(block, message["role"], _ONLY_IN_NEWEST)
            if message["role"] == "user" and _is_cited(block):
                problem = "only text of the model may have citations"
                yield at(f"{block.path}.text.citations", problem)


def _is_cited(block: Block) -> bool:
    return block.kind == "text" and bool(block.value.get("citations"))


def _check_role(block: Block, role: str, only_in: Mapping[str, str]) -> Refusals:
    allowed = only_in.get(block.kind, role)
    if role != allowed:
        problem = f"`{block.kind}` blocks can only be in `{allowed}` messages"
        yield at(f"messages.{block.message}", problem)


def _check_block(block: Block, role: str) -> Refusals:
    yield from _check_role(block, role, _ONLY_IN)
    if block.kind == "text":
        yield from _check_text("messages", block.text)
    inside = block.value.get("content") if block.kind == "tool_result" else None
    for part in inside if isinstance(inside, list) else []:
        if part["type"] == "text":
            yield from _check_text("messages", part["text"])


def _check_text(where: str, text: str) -> Refusals:
    if not text:
        yield at(where, "text content blocks must be non-empty")
    if not text.strip():
        yield at(where, "text content blocks must contain non-whitespace text")


def _check_unique(turns: Sequence[Turn]) -> Refusals:
    seen: Counter[str] = Counter()
    for block in (block for turn in turns for block in turn.of("tool_use")):
        seen[block.value["id"]] += 1
        if seen[block.value["id"]] > 1:
            yield at(block.path, "`tool_use` ids must be unique")


@dataclass(frozen=True)
class _Pair:
    """A turn and the one that follows it, if there is one."""

    before: Turn
    after: Turn

    def check(self) -> Refusals:
        made = {block.value["id"]: block for block in self.before.of("tool_use")}
        yield from self._check_results(set(made))
        answered = {block.value["tool_use_id"] for block in self._at_once()}
        left = [identity for identity in made if identity not in answered]
        if left:
            yield at(
                f"messages.{made[left[0]].message}",
                "`tool_use` ids were found without `tool_result` blocks immediately "
                f"after: {', '.join(left)}. Each `tool_use` block must have a "
                "corresponding `tool_result` block in the next message.",
            )

    def _at_once(self) -> Iterator[Block]:
        """The results before anything else is said."""
        return takewhile(lambda block: block.kind == "tool_result", self.after.blocks)

    def _check_results(self, made: set[str]) -> Refusals:
        seen: Counter[str] = Counter()
        for block in self.after.of("tool_result"):
            identity = block.value["tool_use_id"]
            seen[identity] += 1
            if identity not in made:
                yield at(
                    block.path,
                    f"unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{identity}. Each `tool_result` block must have a corresponding "
                    "`tool_use` block in the previous message.",
                )
            if seen[identity] > 1:
                yield at(
                    block.path,
                    "each tool_use must have a single result. Found multiple "
                    f"`tool_result` blocks with id: {identity}",
                )


_NOBODY = Turn("", ())


def _check_pairs(turns: Sequence[Turn]) -> Refusals:
    for before, after in pairwise([_NOBODY, *turns, _NOBODY]):
        yield from _Pair(before, after).check()
