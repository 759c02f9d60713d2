"""The script: what the model answers, turn by turn. Section 4 of the contract."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Discriminator, Field, JsonValue, Tag

from chaoskit.model.fields import Flag, Frozen, Seconds, Shaped, Text, slug

SERVED_BY_AGENT = ("ask_human", "wait")
"""The calls that `ask` and `wait` turns become; no tool may have their names."""

TOOL_NAME = rf"(?!(?:{'|'.join(SERVED_BY_AGENT)})$)[A-Za-z0-9_-]{{1,64}}"


def _tool_name_fix(name: str) -> str | None:
    if name not in SERVED_BY_AGENT:
        return slug(name)
    return f"'{name}' is served by the agent itself: write an `ask` or a `wait` turn"


ToolName = Annotated[
    Text,
    Shaped(
        TOOL_NAME,
        "a tool's name: letters, digits, - and _, at most 64 of them, and not "
        + " or ".join(SERVED_BY_AGENT),
        _tool_name_fix,
    ),
]


class Wobble(StrEnum):
    """How the model may answer differently when it is asked the same again."""

    NONE = "none"


class Call(Frozen):
    """One call of a tool by the scripted model."""

    tool: ToolName
    args: dict[str, JsonValue]


class CallTurn(Frozen):
    """The model calls one tool, or several in parallel."""

    call: Annotated[tuple[Call, ...], Field(min_length=1)]
    """`{tool: {argument: value}}`, or a list of those for parallel calls."""


class AskTurn(Frozen):
    """A human gate: the model calls `ask_human`, which the agent serves itself."""

    ask: Text
    """The question to the human."""


class WaitTurn(Frozen):
    """A durable wait: the model calls `wait`, which the agent serves itself."""

    wait: Seconds
    """How long, in seconds."""


class SayTurn(Frozen):
    """The model says something and calls nothing."""

    say: Text
    """The words; those of the last turn are the final answer."""


TURNS: Mapping[str, type[Frozen]] = {
    "call": CallTurn,
    "ask": AskTurn,
    "wait": WaitTurn,
    "say": SayTurn,
}


def _turn_kind(turn: Any) -> str | None:
    if isinstance(turn, Mapping):
        return next((kind for kind in TURNS if kind in turn), None)
    return next((kind for kind, cls in TURNS.items() if isinstance(turn, cls)), None)


Turn = Annotated[
    Annotated[CallTurn, Tag("call")]
    | Annotated[AskTurn, Tag("ask")]
    | Annotated[WaitTurn, Tag("wait")]
    | Annotated[SayTurn, Tag("say")],
    Discriminator(_turn_kind),
]


class Llm(Frozen):
    """The scripted model: the workload. Section 4 of the contract."""

    script: Annotated[tuple[Turn, ...], Field(min_length=1)]
    """The model's turns in order; the last one is a `say`."""
    fresh_ids: Flag = True
    """Whether every reply has new ids, as a real model's has."""
    wobble: Wobble = Wobble.NONE
    """How a repeated question may be answered differently."""
