"""The scenario: one workload and what is tried on it. Section 6 of the contract."""

from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from chaoskit.model.errors import Flaw, did_you_mean, listed
from chaoskit.model.faults import FaultKind
from chaoskit.model.fields import Frozen, Seconds, Shaped, Text, Whole, flaw, slug
from chaoskit.model.schedule import Schedule
from chaoskit.model.script import AskTurn as AskTurn
from chaoskit.model.script import Call as Call
from chaoskit.model.script import CallTurn as CallTurn
from chaoskit.model.script import Llm as Llm
from chaoskit.model.script import SayTurn as SayTurn
from chaoskit.model.script import ToolName
from chaoskit.model.script import Turn as Turn
from chaoskit.model.script import WaitTurn as WaitTurn
from chaoskit.model.script import Wobble as Wobble


class ToolClass(StrEnum):
    """What a service promises about its effects. Section 3 of the contract."""

    READ = "read"
    KEYED = "keyed"
    QUERYABLE = "queryable"
    BLIND = "blind"


class Strategy(StrEnum):
    """Which schedules are tried."""

    SWEEP = "sweep"
    """Each crossing of the fault-free run at both edges, then pairs, to `depth`."""
    CLOSURE = "closure"
    """Every crash state that any number of kills can reach, by restoring worlds."""
    SAMPLE = "sample"
    """Seeded random walks of several faults a run."""
    REPLAY = "replay"
    """The schedules that are named, and no others."""


class PromiseId(StrEnum):
    """What is checked of every trial. Section 7 of the contract."""

    EFFECTS = "effects"
    PROGRESS = "progress"
    TRANSCRIPT = "transcript"
    LOG = "log"


ScenarioName = Annotated[
    Text,
    Shaped(
        r"[A-Za-z0-9_][A-Za-z0-9_-]{0,59}",
        "a name that can be a folder: letters, digits, - and _, at most 60 of them",
        slug,
    ),
]


class Task(Frozen):
    """What the agent is asked to do."""

    goal: Text
    """The task in words, given to the agent as `{goal}`."""


class Tool(Frozen):
    """A tool that the model may call."""

    cls: Annotated[ToolClass, Field(alias="class")]
    """What the service promises: read, keyed, queryable or blind."""
    result: JsonValue = None
    """What the tool answers; without it, an answer made from the call."""


def _parses(text: str) -> str:
    try:
        Schedule.parse(text)
    except ValueError as error:
        raise flaw("a schedule", str(error)) from None
    return text


ScheduleText = Annotated[Text, AfterValidator(_parses)]


class Search(Frozen):
    """How schedules are chosen."""

    strategy: Strategy = Strategy.SWEEP
    """Which schedules are tried."""
    depth: Annotated[Whole, Field(ge=1, le=10)] = 1
    """How many faults one schedule may have."""
    seed: Annotated[Whole, Field(ge=-(2**63), lt=2**63)] = 0
    """Where all randomness of the campaign comes from."""
    trials: Annotated[Whole, Field(ge=1, le=1_000_000)] = 500
    """The most trials that one campaign runs; what is left over is a doubt."""
    schedules: tuple[ScheduleText, ...] = ()
    """What `replay` runs, each as `kill@0:tools.pay[o-1]#1:after`."""

    @model_validator(mode="after")
    def _replays_something(self) -> Self:
        if (self.strategy is Strategy.REPLAY) == bool(self.schedules):
            return self
        hint = 'add `schedules: ["kill@0:llm.chat#1:before"]`'
        raise flaw("`schedules` with the strategy replay, and with no other", hint)


class Limits(Frozen):
    """How long things may take, in seconds."""

    life_seconds: Seconds = 30
    """For one life of the agent."""
    trial_seconds: Seconds = 120
    """For all lives of one trial."""
    grace_seconds: Seconds = 5
    """For a life that was asked to end."""


class LogicalCall(NamedTuple):
    """A call's identity is its place in the script. Section 3 of the contract."""

    turn: int
    position: int
    tool: str
    args: dict[str, JsonValue]


class Scenario(Frozen):
    """One workload, the agent that is to do it, and what is tried on it."""

    name: ScenarioName
    """What the scenario is called; folders and runs are named after it."""
    about: Annotated[str, Field(strict=True)] = ""
    """A sentence that says what is promised."""
    agent: Text
    """The agent's manifest, relative to the folder of this file."""
    task: Task
    """What the agent is asked to do."""
    llm: Llm
    """What the model answers, turn by turn."""
    tools: dict[ToolName, Tool] = Field(default_factory=dict)
    """The tools by name, each with its class."""
    search: Search = Search()
    """How schedules are chosen."""
    faults: Annotated[tuple[FaultKind, ...], Field(min_length=1)] = (FaultKind.KILL,)
    """The kinds of fault that are tried."""
    promises: Annotated[tuple[PromiseId, ...], Field(min_length=1)] | None = None
    """The promises that are checked; without it, all that apply."""
    limits: Limits = Limits()
    """How long things may take."""
    human: tuple[Text, ...] = ()
    """The answers to the script's `ask` turns, in order."""
    volatile: tuple[Text, ...] = ()
    """Paths in the store that differ between equal states, ignored by closure."""

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        flaws = scenario_flaws(self.llm.script, self.tools, len(self.human))
        for first in flaws:
            raise flaw(str(first), first.hint)
        return self

    def calls(self) -> tuple[LogicalCall, ...]:
        """Every tool call of the script, in the script's order."""
        return tuple(
            LogicalCall(index, position, call.tool, call.args)
            for index, turn in enumerate(self.llm.script)
            if isinstance(turn, CallTurn)
            for position, call in enumerate(turn.call)
        )


def scenario_flaws(
    script: Sequence[Turn | None], tools: Collection[str] | None, answers: int | None
) -> Iterator[Flaw]:
    """The rules between fields. What is None is wrong in itself: no opinion on it."""
    for index, turn in enumerate(script):
        if isinstance(turn, CallTurn) and tools is not None:
            yield from _undeclared(index, turn, tools)
    if script and not isinstance(script[-1], SayTurn | None):
        end = "a `say` as the last turn: the final answer"
        yield Flaw(("llm", "script", len(script) - 1), end, 'add `- say: "Done."`')
    gates = sum(isinstance(turn, AskTurn) for turn in script)
    if answers is not None and answers < gates:
        yield Flaw(("human",), f"{gates} answers, one for each `ask` of the script")


def _undeclared(index: int, turn: CallTurn, tools: Collection[str]) -> Iterator[Flaw]:
    known = listed(tools) or "none so far"
    for position, call in enumerate(turn.call):
        if call.tool not in tools:
            place = ("llm", "script", index, "call", position, "tool")
            guess = did_you_mean(call.tool, tools)
            remedy = guess or f"add '{call.tool}' and its class to `tools`"
            yield Flaw(place, f"a tool declared under `tools` ({known})", remedy)
