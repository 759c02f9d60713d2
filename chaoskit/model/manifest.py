"""The manifest: how to run an agent, and its promises. Section 1 of the contract."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from chaoskit.model.commands import AnswerCommand, Command, FilledText
from chaoskit.model.commands import fill as fill
from chaoskit.model.errors import Flaw, printable
from chaoskit.model.fields import Frozen, Shaped, Text, Whole, flaw

WORLD_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "REDIS_URL", "DATABASE_URL")
WORLD_PREFIX = "CHAOSKIT_"
DEFAULT_EXITS = "what is not given is done: [0], parked: [75], failed: [65]"


class Launch(StrEnum):
    """How a life comes to be."""

    PROCESS = "process"
    FORK = "fork"
    DOCKER = "docker"


class Disk(StrEnum):
    """What a life in a container finds on the container's own disk."""

    FRESH = "fresh"
    KEEP = "keep"


class Store(StrEnum):
    """Where the agent keeps its state."""

    REDIS = "redis"
    SQLITE = "sqlite"
    POSTGRES = "postgres"
    FILES = "files"
    NONE = "none"


class Guarantee(StrEnum):
    """How often an effect may be applied for one logical call."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    AT_MOST_ONCE = "at-most-once"


class Resumes(StrEnum):
    """How far back a crash may take a run, as its agent's documentation says."""

    LAST_CHECKPOINT = "last-checkpoint"
    """Nowhere: what the model has seen is stored."""
    EARLIER_CHECKPOINT = "earlier-checkpoint"
    """Past steps that were done since it began or last parked."""
    START = "start"
    """To its beginning."""


class Capability(StrEnum):
    """What the agent can do beyond the base."""

    STREAMING = "streaming"
    PARALLEL_TOOLS = "parallel-tools"
    APPROVAL = "approval"
    TIMERS = "timers"
    WORKER = "worker"


def _in_a_line(name: str) -> str:
    if name.isprintable():
        return name
    raise flaw("a name in one line of characters that can be seen", printable(name))


def _not_of_the_world(name: str) -> str:
    if name not in WORLD_VARIABLES and not name.startswith(WORLD_PREFIX):
        return name
    raise flaw("a variable of the agent's own", f"{name} is set by chaoskit itself")


_WORD = "[A-Za-z_][A-Za-z0-9_]*"
_MODULE = rf"{_WORD}(?:\.{_WORD})*"

Name = Annotated[Text, AfterValidator(_in_a_line)]
ExitCode = Annotated[Whole, Field(ge=0, le=255)]
VariableName = Annotated[
    Text,
    Shaped(_WORD, "a variable's name: letters, digits and _"),
    AfterValidator(_not_of_the_world),
]
ModuleName = Annotated[Text, Shaped(_MODULE, "a module's name, as in package.module")]
FunctionName = Annotated[
    Text, Shaped(rf"{_MODULE}:{_WORD}", "a function, written as module:function")
]


SINGLE = ("submit", "answer", "status", "inspect")
"""What processes that a fleet does not consist of are called."""


def _not_single(name: str) -> str:
    if name not in SINGLE:
        return name
    raise flaw("a name of its own", f"{name} is the command of that name")


ProcessName = Annotated[
    Text,
    Shaped("[a-z][a-z0-9_-]{0,39}", "a name: small letters, digits, - and _"),
    AfterValidator(_not_single),
]


class Exits(Frozen):
    """The exit codes that mean something; any other end is a death."""

    done: Annotated[tuple[ExitCode, ...], Field(min_length=1)] = (0,)
    """The run is finished."""
    parked: tuple[ExitCode, ...] = (75,)
    """The run waits: for a human, a timer, or an effect in doubt."""
    failed: tuple[ExitCode, ...] = (65,)
    """The run gave up for good and said why."""


class AgentContract(Frozen):
    """What the agent promises."""

    effects: Guarantee
    """How often an effect may be applied for one logical call."""
    resumes: Resumes = Resumes.LAST_CHECKPOINT
    """Where a run goes on after a crash: last-checkpoint, earlier-checkpoint, start."""
    max_lives: Annotated[Whole, Field(ge=1, le=1000)] = 5
    """Lives that no scheduled fault ended; beyond them the run never ends."""
    max_attempts: Annotated[Whole, Field(ge=1, le=1000)] | None = None
    """Deaths at one call after which the agent itself gives the run up."""


class LogNames(Frozen):
    """The agent's own names for the fields of a log line."""

    run_id: Text = "run_id"
    """The run's id."""
    step: Text = "step"
    """The step of the run."""
    checkpoint_id: Text = "checkpoint_id"
    """The newest durable checkpoint, a whole number."""
    level: Text = "level"
    """The level of the line."""
    event: Text = "event"
    """What happened."""
    call: Text = "call"
    """The tool call that the line belongs to."""


class Fork(Frozen):
    """How a life is forked from a warm parent."""

    preload: tuple[ModuleName, ...] = ()
    """Modules that the parent imports once."""
    call: FunctionName
    """The function that each life runs, as `module:function`."""


class Docker(Frozen):
    """How a life is run in a container."""

    image: Text
    """The image's name; the engine has it already, and nothing is pulled."""
    disk: Disk = Disk.FRESH
    """fresh: each life is a new container; keep: the lives of a run share its disk."""


class Ready(Frozen):
    """By what a process shows that others may start."""

    tcp: Annotated[Whole, Field(ge=1, le=65535)]
    """A port on the loopback interface that it listens on."""


class Process(Frozen):
    """One kind of the processes that a long-lived agent consists of."""

    command: Command
    """Starts one of them, at first and after each of its deaths."""
    copies: Annotated[Whole, Field(ge=1, le=16)] = 1
    """How many run at a time; each has a name of its own, `worker.1`, `worker.2`."""
    ready: Ready | None = None
    """What is waited for before the next one is started."""


class Manifest(Frozen):
    """An agent as chaoskit sees it: commands, exit codes and promises."""

    name: Name
    """What the agent is called."""
    version: Name | None = None
    """Goes on the certificate."""
    launch: Launch
    """How a life comes to be: process, fork or docker."""
    start: Command | None = None
    """Starts the first life of a run; a long-lived agent has `submit` instead."""
    resume: Command | None = None
    """Starts each later life; without it, `start` does."""
    answer: AnswerCommand | None = None
    """Brings a human's answer to a run that is parked at a gate."""
    submit: Command | None = None
    """Hands the run to the processes of a long-lived agent, once or more often."""
    status: Command | None = None
    """Prints running, parked, done or failed; once done, the answer on a next line."""
    processes: Annotated[dict[ProcessName, Process], Field(min_length=1)] | None = None
    """The processes of a long-lived agent by name, in the order of their start."""
    store: Store
    """Where the agent keeps its state."""
    exits: Exits = Exits()
    """The exit codes that mean something."""
    inspect: Command | None = None
    """Prints what the next life would read back."""
    contract: AgentContract
    """What the agent promises."""
    capabilities: tuple[Capability, ...] = ()
    """What the agent can do beyond the base."""
    log: LogNames = LogNames()
    """The agent's own names for the fields of a log line."""
    env: dict[VariableName, FilledText] = Field(default_factory=dict)
    """Variables added to the environment of each life."""
    fork: Fork | None = None
    """How a life is forked; needed when `launch` is fork."""
    docker: Docker | None = None
    """How a life is run in a container; needed when `launch` is docker."""

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        given = {name for name in LAUNCHED_BY.values() if getattr(self, name)}
        given |= {name for name in (*COMMANDS, "processes") if getattr(self, name)}
        words = {name: getattr(self, name) or () for name in COMMANDS}
        for first in manifest_flaws(self.exits, self.launch, given, words):
            raise flaw(str(first), first.hint)
        return self

    @property
    def fleet(self) -> tuple[tuple[str, Process], ...]:
        """Every process of a long-lived agent with its own name; none of a one-shot."""
        return tuple(
            (name if process.copies == 1 else f"{name}.{copy}", process)
            for name, process in (self.processes or {}).items()
            for copy in range(1, process.copies + 1)
        )

    @property
    def program(self) -> str:
        """The first word of the command by which a run begins."""
        begins = self.start or self.submit
        assert begins, "one of them is there"
        return begins[0]


COMMANDS = ("start", "resume", "answer", "submit", "status", "inspect")
LONG_LIVED = ("submit", "status", "processes")
"""What a long-lived agent has instead of `start`."""
LAUNCHED_BY: Mapping[Launch, str] = {Launch.FORK: "fork", Launch.DOCKER: "docker"}
"""The key that a way to launch needs."""

_EXAMPLES = {
    "fork": 'fork: {preload: [my_agent], call: "my_agent:main"}',
    "docker": "docker: {image: my-agent, disk: fresh}",
}


def manifest_flaws(
    exits: Exits,
    launch: Launch | None,
    given: Collection[str],
    commands: Mapping[str, Sequence[object]],
) -> Iterator[Flaw]:
    """The rules between fields; `given` are the keys that the manifest has."""
    needed = LAUNCHED_BY.get(launch) if launch else None
    if needed and needed not in given:
        expected = f"`{needed}`, since `launch` is {needed}"
        yield Flaw((needed,), expected, f"add `{_EXAMPLES[needed]}`")
    if launch is Launch.DOCKER:
        yield from _of_this_machine(commands)
    yield from _one_way_to_run(launch, given)
    yield from _exits_shared(exits)


def _one_way_to_run(launch: Launch | None, given: Collection[str]) -> Iterator[Flaw]:
    """A run is started, or it is submitted to processes that are there."""
    one_shot = [key for key in ("start", "resume") if key in given]
    if not any(key in given for key in LONG_LIVED):
        if "start" not in given:
            yield Flaw(("start",), "`start`: starts the first life of a run", _OR_ELSE)
        return
    for key in one_shot:
        expected = f"no `{key}` beside `submit`, `status` and `processes`"
        yield Flaw((key,), expected, "an agent is started for each run, or long-lived")
    for key in LONG_LIVED:
        if key not in given:
            yield Flaw((key,), f"`{key}`, as a long-lived agent has", _WHAT_IT_IS[key])
    if launch is Launch.DOCKER:
        expected = "process or fork, since the agent is long-lived"
        yield Flaw(("launch",), expected, "containers of one agent are not there yet")


_OR_ELSE = "or, for a long-lived agent, `submit`, `status` and `processes`"
_WHAT_IT_IS = {
    "submit": 'add `submit: [python, agent.py, submit, "{run}", "{goal}"]`',
    "status": 'add `status: [python, agent.py, status, "{run}"]`',
    "processes": "add `processes: {worker: {command: [python, worker.py]}}`",
}


def _of_this_machine(commands: Mapping[str, Sequence[object]]) -> Iterator[Flaw]:
    """Words that mean nothing in a container."""
    for command, words in commands.items():
        for index, word in enumerate(words):
            if isinstance(word, str) and "{python}" in word.replace("{{", ""):
                expected = "a program of the image, since `launch` is docker"
                hint = "{python} is the interpreter chaoskit runs on; write `python`"
                yield Flaw((command, index), expected, hint)


def _exits_shared(exits: Exits) -> Iterator[Flaw]:
    seen: dict[int, str] = {}
    ends: Mapping[str, tuple[int, ...]] = exits.model_dump()
    for end, codes in ends.items():
        for index, code in enumerate(codes):
            first = seen.setdefault(code, end)
            if first != end:
                place = ("exits", end, index)
                own = f"a code of its own; {code} already means {first}"
                is_default = not {end, first} <= exits.model_fields_set
                yield Flaw(place, own, DEFAULT_EXITS if is_default else None)
