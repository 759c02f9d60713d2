"""The scenario: one workload and what is tried on it. Section 6 of the contract."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from chaoskit.model.errors import Flaw, did_you_mean, listed
from chaoskit.model.fault_table import wrong_argument
from chaoskit.model.faults import FaultKind, Wanted
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


class Via(StrEnum):
    """How a tool is called."""

    HTTP = "http"
    """By `CHAOSKIT_TOOLS_URL` or `CHAOSKIT_MCP_URL`."""
    SMTP = "smtp"
    """By a mail to `CHAOSKIT_SMTP_HOST`, whose `Message-ID` is the idempotency key."""


STRAY_MAIL = "unscripted mail"
"""The tool of a mail that is no call of the script; none can be declared so."""


class Strategy(StrEnum):
    """Which schedules are tried."""

    SWEEP = "sweep"
    """Each crossing of the fault-free run at both edges, then pairs, to `depth`."""
    CLOSURE = "closure"
    """Every crash state that any number of kills can reach, by restoring worlds."""
    TREADMILL = "treadmill"
    """A run killed at every crossing, life by life; another where it is given up."""
    SAMPLE = "sample"
    """Seeded random walks of several faults a run."""
    REPLAY = "replay"
    """The schedules that are named, and no others."""


class PromiseId(StrEnum):
    """What is checked of every trial. Section 7 of the contract."""

    EFFECTS = "effects"
    PROGRESS = "progress"
    ANSWER = "answer"
    TRANSCRIPT = "transcript"
    COST = "cost"
    STORE = "store"
    LOG = "log"
    FENCE = "fence"
    HUMAN = "human"
    LOUD = "loud"
    SECRETS = "secrets"


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
    via: Via = Via.HTTP
    """How it is called: `http`, or `smtp` where a call is a mail."""

    @model_validator(mode="after")
    def _suits_mail(self) -> Self:
        if self.via is Via.SMTP and self.cls is ToolClass.READ:
            hint = "a mail is an effect: keyed, queryable or blind"
            raise flaw("no `class: read` for a tool that is called by mail", hint)
        if self.via is Via.SMTP and self.result is not None:
            raise flaw("no `result` for a tool that is called by mail", "leave it out")
        return self


def _parses(text: str) -> str:
    try:
        Schedule.parse(text)
    except ValueError as error:
        raise flaw("a schedule", str(error)) from None
    return text


ScheduleText = Annotated[Text, AfterValidator(_parses)]


def fault_flaw(text: str) -> str | None:
    """Why a text is no fault that can be wanted, in words; None if it is one."""
    try:
        kind, argument = Wanted.parse(text)
    except ValueError as error:
        return str(error)
    return None if argument is None else wrong_argument(kind, argument)


def _is_wanted(text: str) -> str:
    if why := fault_flaw(text):
        raise flaw("a fault, such as kill or error(429)", why)
    return text


_ANY_FAULT = rf"^({'|'.join(FaultKind)})(\([^()]*\))?$"
FaultText = Annotated[
    Text, AfterValidator(_is_wanted), Field(json_schema_extra={"pattern": _ANY_FAULT})
]


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
    """How long things may take, in seconds, and how much room."""

    life_seconds: Seconds = 30
    """For one life of the agent."""
    trial_seconds: Seconds = 120
    """For all lives of one trial, but those that a fault of that life alone ended."""
    grace_seconds: Seconds = 5
    """For a life that was asked to end."""
    memory_mb: Annotated[Whole, Field(ge=16, le=2**20)] | None = None
    """For each process of a life, in MiB; for all of it where it is a container."""
    file_mb: Annotated[Whole, Field(ge=1, le=2**20)] = 256
    """For each file that a life writes, its output too, in MiB; not in a container."""


class RedisDurability(StrEnum):
    """What a Redis server keeps on disk."""

    ALWAYS = "always"
    """An append-only file, synced at every write."""
    EVERYSEC = "everysec"
    """An append-only file, synced once a second."""
    NO = "no"
    """An append-only file, synced when the system likes."""
    NONE = "none"
    """Nothing: a restart begins empty."""


class PostgresDurability(StrEnum):
    """Whether a commit waits for the disk (`synchronous_commit`)."""

    ON = "on"
    """It does."""
    OFF = "off"
    """It does not, and the last ones may be lost."""


class Durability(Frozen):
    """The durability settings of the stores, which a `restart` puts to the test."""

    redis: RedisDurability = RedisDurability.ALWAYS
    """Of Redis: always, everysec, no or none."""
    postgres: PostgresDurability = PostgresDurability.ON
    """Of PostgreSQL's commits: on or off."""


class LogicalCall(NamedTuple):
    """A call's identity is its place in the script. Section 3 of the contract."""

    turn: int
    position: int
    tool: str
    args: dict[str, JsonValue]
    variants: tuple[Call, ...] = ()
    """What else it may be where the model wobbles: any of them is this call."""

    @property
    def all_args(self) -> tuple[dict[str, JsonValue], ...]:
        """Its arguments, in each form that it may have."""
        return (self.args, *(form.args for form in self.variants))


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
    faults: Annotated[tuple[FaultText, ...], Field(min_length=1)] = (FaultKind.KILL,)
    """The faults that are tried, such as `kill`, or `error(429)` for one error only."""
    promises: Annotated[tuple[PromiseId, ...], Field(min_length=1)] | None = None
    """The promises that are checked; without it, all that apply."""
    durability: Durability = Durability()
    """What the stores promise to keep when they are killed."""
    limits: Limits = Limits()
    """How long things may take."""
    human: tuple[Text, ...] = ()
    """The answers to the script's `ask` turns, in order; brought again if forgotten."""
    volatile: tuple[Text, ...] = ()
    """Paths in the store that differ between equal states, ignored by closure."""

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        classes = {name: tool.cls for name, tool in self.tools.items()}
        flaws = scenario_flaws(self.llm.script, classes, len(self.human))
        for first in (*flaws, *search_flaws(self.search.strategy, self.faults)):
            raise flaw(str(first), first.hint)
        return self

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """The faults that are tried, parsed."""
        return tuple(map(Wanted.parse, self.faults))

    def calls(self) -> tuple[LogicalCall, ...]:
        """Every tool call of the script, in the script's order."""
        return tuple(
            LogicalCall(index, position, call.tool, call.args, tuple(others))
            for index, turn in enumerate(self.llm.script)
            if isinstance(turn, CallTurn)
            for position, (call, *others) in enumerate(turn.variants)
        )


def scenario_flaws(
    script: Sequence[Turn | None],
    tools: Mapping[str, object] | None,
    answers: int | None,
) -> Iterator[Flaw]:
    """The rules between fields. What is None is wrong in itself: no opinion on it.

    ``tools`` are the classes of the tools by name.
    """
    for index, turn in enumerate(script):
        if isinstance(turn, CallTurn) and tools is not None:
            yield from _undeclared(index, turn, tools)
            yield from _unlike(index, turn, tools)
    if script and not isinstance(script[-1], SayTurn | None):
        end = "a `say` as the last turn: the final answer"
        yield Flaw(("llm", "script", len(script) - 1), end, 'add `- say: "Done."`')
    gates = sum(isinstance(turn, AskTurn) for turn in script)
    if answers is not None and answers < gates:
        yield Flaw(("human",), f"{gates} answers, one for each `ask` of the script")


ENDS = (FaultKind.KILL, FaultKind.POWERLOSS)
"""The faults after which the world is all that is left."""


def search_flaws(
    strategy: Strategy | None, faults: Sequence[str | None]
) -> Iterator[Flaw]:
    """What a strategy cannot try."""
    if strategy not in (Strategy.CLOSURE, Strategy.TREADMILL):
        return
    for index, text in enumerate(faults):
        if text is not None and Wanted.parse(text).kind not in ENDS:
            known = f"{' or '.join(ENDS)} with the strategy {strategy}"
            yield Flaw(("faults", index), known, "use the strategy sweep for it")


def _unlike(index: int, turn: CallTurn, tools: Mapping[str, object]) -> Iterator[Flaw]:
    """A call and what may be chosen in its place are of one class, and judged by it."""
    for way, step in enumerate(turn.steps[1:]):
        for position, (call, own) in enumerate(zip(step, turn.call, strict=True)):
            known = tools.get(call.tool), tools.get(own.tool)
            if None not in known and known[0] != known[1]:
                place = ("llm", "script", index, "or", way, position, "tool")
                kind = f"a tool of the same class as {own.tool}: {known[1]}"
                yield Flaw(place, kind, f"{call.tool} is {known[0]}")


def _undeclared(index: int, turn: CallTurn, tools: Collection[str]) -> Iterator[Flaw]:
    known = listed(tools) or "none so far"
    for way, step in enumerate(turn.steps):
        for position, call in enumerate(step):
            if call.tool not in tools:
                inner = ("call",) if way == 0 else ("or", way - 1)
                place = ("llm", "script", index, *inner, position, "tool")
                guess = did_you_mean(call.tool, tools)
                remedy = guess or f"add '{call.tool}' and its class to `tools`"
                yield Flaw(place, f"a tool declared under `tools` ({known})", remedy)
