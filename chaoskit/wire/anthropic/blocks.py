"""Content of a Messages request, read as turns: blocks with their places.

The API takes consecutive messages of one role for a single turn. Everything here works
on broken requests too, as well as may be.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Message = Mapping[str, Any]


@dataclass(frozen=True)
class Block:
    """One block of content, and where it stands."""

    message: int
    index: int
    value: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """Its `type`; empty where it has none."""
        return str(self.value.get("type") or "")

    @property
    def path(self) -> str:
        """Where the API says that it stands."""
        return f"messages.{self.message}.content.{self.index}"

    @property
    def text(self) -> str:
        """What it says, if it is text."""
        said = self.value.get("text") if self.kind == "text" else None
        return said if isinstance(said, str) else ""


@dataclass(frozen=True)
class Turn:
    """What one side says before the other does."""

    role: str
    blocks: tuple[Block, ...]

    def of(self, kind: str) -> list[Block]:
        """Its blocks of a type."""
        return [block for block in self.blocks if block.kind == kind]


def messages_of(body: Mapping[str, Any]) -> list[Message]:
    """The messages of a request; what is no object becomes an empty one."""
    listed = body.get("messages")
    found = listed if isinstance(listed, list) else []
    return [message if isinstance(message, dict) else {} for message in found]


def blocks_of(index: int, message: Message) -> Iterator[Block]:
    """The blocks of a message; a text alone is one block."""
    yield from _blocks(index, message.get("content"))


def _blocks(message: int, content: object) -> Iterator[Block]:
    if isinstance(content, str):
        yield Block(message, 0, {"type": "text", "text": content})
    if isinstance(content, list):
        for index, value in enumerate(content):
            if isinstance(value, dict):
                yield Block(message, index, value)


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    """The turns of a conversation; a system message interrupts none."""
    turns: list[Turn] = []
    for index, message in enumerate(messages):
        role, blocks = message.get("role"), tuple(blocks_of(index, message))
        if role == "system":
            continue
        if turns and turns[-1].role == role:
            turns[-1] = Turn(turns[-1].role, turns[-1].blocks + blocks)
        else:
            turns.append(Turn(str(role), blocks))
    return turns


def result_texts(block: Block) -> list[str]:
    """What the result of a tool says, part by part."""
    inner = _blocks(block.message, block.value.get("content"))
    return [part.text for part in inner if part.text]


def texts_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    """What a request says in words, in its order: system, messages, results."""
    blocks = [*_blocks(0, body.get("system"))]
    for index, message in enumerate(messages_of(body)):
        blocks += blocks_of(index, message)
    return tuple(_said(blocks))


def _said(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if block.kind == "tool_result":
            yield from result_texts(block)
        elif block.text:
            yield block.text
