"""The script: what the model answers, turn by turn. Section 4 of the contract."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Discriminator, Field, JsonValue, Tag, model_validator

from chaoskit.model.fields import Flag, Frozen, Seconds, Shaped, Text, flaw, slug

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
    """It says the same again, with fresh ids."""
    WORDING = "wording"
    """What it says and asks is worded differently."""
    ARGUMENTS = "arguments"
    """It makes the same calls with other arguments, those under a call's `or`."""
    CHOICE = "choice"
    """It chooses another step, one of those under a turn's `or`."""


Args = dict[str, JsonValue]
Others = Annotated[tuple[Args, ...], Field(min_length=1)]


class Call(Frozen):
    """One call of a tool by the scripted model."""

    tool: ToolName
    args: Args
    others: Annotated[Others | None, Field(alias="or")] = None
    """Other arguments of the same logical call, for `wobble: arguments`."""

    @property
    def variants(self) -> tuple["Call", ...]:
        """The call with each of its arguments; the script's own come first."""
        return tuple(
            Call(tool=self.tool, args=args)
            for args in (self.args, *(self.others or ()))
        )


Step = Annotated[tuple[Call, ...], Field(min_length=1)]


class CallTurn(Frozen):
    """The model calls one tool, or several in parallel."""

    call: Step
    """`{tool: {argument: value}}`, or a list of those for parallel calls."""
    others: Annotated[
        Annotated[tuple[Step, ...], Field(min_length=1)] | None, Field(alias="or")
    ] = None
    """Other steps in place of this one, each as `call`, for `wobble: choice`."""

    @model_validator(mode="after")
    def _as_many_calls(self) -> Self:
        for step in self.others or ():
            if len(step) != len(self.call):
                called = f"{len(self.call)} call{'s' * (len(self.call) > 1)}"
                hint = "each stands for the call of `call` in the same place"
                raise flaw(f"{called} in each step under `or`, as in `call`", hint)
        return self

    @property
    def steps(self) -> tuple[tuple[Call, ...], ...]:
        """Every step that may be taken here; the script's own comes first."""
        return (self.call, *(self.others or ()))

    @property
    def variants(self) -> tuple[tuple[Call, ...], ...]:
        """For each logical call, all that it may be: any of them is that call."""
        return tuple(
            tuple(variant for step in self.steps for variant in step[position].variants)
            for position in range(len(self.call))
        )


class AskTurn(Frozen):
    """A human gate: the model calls `ask_human` (with `question`), which the agent
    serves itself."""

    ask: Text
    """The question to the human."""


class WaitTurn(Frozen):
    """A durable wait: the model calls `wait` (with `seconds`), which the agent serves
    itself."""

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

    @model_validator(mode="after")
    def _can_wobble(self) -> Self:
        turns = [turn for turn in self.script if isinstance(turn, CallTurn)]
        if self.wobble is Wobble.CHOICE and not any(turn.others for turn in turns):
            hint = "as in `call: {take_train: {}}` with `or: [{take_bus: {}}]` below"
            raise flaw("a turn with other steps under `or`, to choose from", hint)
        calls = (call for turn in turns for call in turn.call)
        if self.wobble is Wobble.ARGUMENTS and not any(call.others for call in calls):
            hint = "as in `call: {hold_seat: {seat: 12A}, or: [{seat: 12a}]}`"
            raise flaw("a call with other arguments under `or`", hint)
        return self
