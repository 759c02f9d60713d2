"""The published contract, printed from the code that runs.

Names, defaults, variables, operations, edges, faults, promises and exit codes are read
from where they are defined; only the sentences between them stand here. So the text
can lag behind the code in tone, never in fact.
"""

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from types import ModuleType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from chaoskit import __version__
from chaoskit.campaign.missed import TRIES_MAX
from chaoskit.certify.reference import certification
from chaoskit.checks import CHECKS
from chaoskit.checks.effects import allowance
from chaoskit.loading.later import CHOICES
from chaoskit.model.commands import PLACEHOLDERS
from chaoskit.model.fault_table import FAULTS
from chaoskit.model.faults import Cell, Empty, FaultKind
from chaoskit.model.history import EVENTS
from chaoskit.model.manifest import Guarantee, Manifest
from chaoskit.model.report import CONTRACT_VERSION
from chaoskit.model.scenario import Scenario, Strategy, ToolClass
from chaoskit.model.script import TURNS, Wobble
from chaoskit.trial.blots import (
    PASSWORD_LENGTH_MIN,
    PASSWORDS,
    SECRET_LENGTH_MIN,
    SECRET_NAMES,
    SECRET_WORDS,
)
from chaoskit.world import files, llm, marks, mcp, postgres, redis, smtp, tools

EXIT_CODES: Mapping[int, str] = {
    0: "pass",
    1: "findings",
    2: "the input is wrong, or something that the run needs is missing",
    3: "inconclusive: the run proves nothing",
    4: "a fault of chaoskit itself",
    130: "interrupted",
}
SERVICES: tuple[tuple[ModuleType, type[Any]], ...] = (
    (llm, llm.Llm),
    (tools, tools.Tools),
    (mcp, mcp.Mcp),
    (smtp, smtp.Smtp),
    (marks, marks.Marks),
    (redis, redis.Redis),
    (postgres, postgres.Postgres),
    (files, files.Files),
)
ALWAYS = {"CHAOSKIT_RUN_ID": "the `{run}` of this trial"}


def contract() -> str:
    """The whole text, as Markdown."""
    return "\n\n".join(_sections()) + "\n"


def crossings() -> str:
    """Every service with its operations and edges, in its own words."""
    return "\n\n".join(_services()) + "\n"


def _sections() -> Iterator[str]:
    yield f"# The agent contract, version {CONTRACT_VERSION}"
    yield (
        f"As chaoskit {__version__} keeps it. chaoskit is black box: it never imports "
        "the agent. Everything the agent can reach is a service of chaoskit's, so "
        "every message crosses one gate, and the gate can stop the agent at an exact "
        "crossing."
    )
    yield "## 1. The manifest: `agent.yaml`"
    yield _fields(Manifest)
    yield "Placeholders in commands and in `env`:"
    yield _table(("placeholder", "is"), _braced(PLACEHOLDERS))
    yield _LIVES
    yield _LONG_LIVED
    yield _LOOKS
    yield "## 2. The world: what the child finds in its environment"
    yield _table(("variable", "service", "is"), _variables())
    yield _ENVIRONMENT
    yield "## 3. Tools, and what each one can promise"
    yield _table(("class", *Guarantee), _allowances())
    yield _EFFECTS
    yield "## 4. The scripted model is the workload"
    yield _table(("turn", "means"), _turns())
    yield _MODEL
    yield _table(("wobble", "asked again, the model"), _members(Wobble))
    yield _WOBBLE
    yield "## 5. Crossings, faults, schedules"
    yield _ADDRESSES
    yield _table(("edge", "means"), _EDGES)
    yield _table(("fault", "means"), _members(FaultKind))
    yield _FAULTS
    yield from _services()
    yield "## 6. The scenario"
    yield _fields(Scenario)
    yield _table(("strategy", "tries"), _members(Strategy))
    yield "## 7. Promises"
    yield _table(("promise", "holds when"), _promises())
    yield _VERDICT.format(tries=TRIES_MAX)
    yield "## 8. What a campaign leaves"
    yield _LEFT.format(
        names=", ".join(SECRET_NAMES),
        words=", ".join(SECRET_WORDS),
        passwords=", ".join(PASSWORDS),
        length=SECRET_LENGTH_MIN,
        short=PASSWORD_LENGTH_MIN,
    )
    yield _table(("event", "means"), _events())
    yield "Exit codes of every verb:"
    yield _table(("code", "means"), ((str(c), m) for c, m in EXIT_CODES.items()))
    yield "## 9. Levels of certification"
    for piece in certification():
        yield piece if isinstance(piece, str) else _table(*piece)
    yield "## Not in this version"
    yield "The contract has these names too; a file that uses one is refused, in words."
    yield "\n".join(f"- {line}" for line in _later())


_LIVES = """\
Commands run in the manifest's folder, in a session and process group of their own.
`fork` starts lives from a parent that has imported `preload` once; each is a real
process with its own pid. `docker` makes each life the first process of a container, in
the image's own folder, behind its entry point and with its variables, on this machine's
network; the image must be there. With `disk: fresh` that is a new container each time,
with `keep` it finds the disk that the run's life before left.

An exit code of `done` finishes the run, `parked` says that it waits and holds no
process, `failed` that it gave up for good. Any other end, by a signal too, is a death:
the next life is started with `resume`. A parked run goes on with `answer` once its gate
has an answer, and with `resume` at the end of a wait and once a second after that;
never for a call in doubt.

`contract.resumes` says how far back a crash may take a run: not at all
(`last-checkpoint`), past what it did since it began or last parked
(`earlier-checkpoint`), or to its beginning (`start`). Steps that such a crash has lost
may be done, and asked, again (`progress/not-again`, `cost/not-asked-again`), and what
comes of that is judged as ever: effects by the class of their tool, keys, checkpoints
that were seen in the store.

Logs are JSON objects with an `event` or a `level`, one a line, on either output.
`event` ends in start, intent, result, checkpoint, resume or end where it means that;
what was started and failed has its end as well, and another try is another start. The
final answer is the last line of standard output, of the life that ends `done`, that is
neither empty nor a log line."""

_LONG_LIVED = """\
A long-lived agent has no `start`: its `processes` are there before the run and after
it. All of them are started, in order; `submit` hands them the run; `status` is asked
until it prints `done` or `failed`, or `parked` with nothing open that is to come. A
process that dies is started again at once, whatever it exited with; `submit` is made
again until it exits 0, and `answer` where whoever brought it died and the run is still
parked at that gate: both must bear it. `status` is a look: what it does is counted
nowhere, and no fault meets it. At the end every process gets SIGTERM and its grace;
that it ends by it, in its own way or by the signal, is expected. After `done` all are
started once more, and must find nothing to do; `status` must go on to say `done`, and
what it prints on the next line is the final answer. `closure` is for agents that are
started for each run, as restoring a world restores no process that remembers it.

Every process is a life with a number of its own in the history, where `process` says
which one it is: `worker.2`, `submit`. Limits: `life_seconds` is for `submit`, `answer`
and `status`, and how long nothing may happen but polls before the run counts as one
that never ends; deaths that no fault caused count against `max_lives`. A lease must
outlast the harness's looks at the world, some ten milliseconds for each message of a
fault-free run. A log line of a process that names no run is of none, and not judged.
What one process has started in its log another may close, as the next life would: by a
`resume`, or by a start or an end of the same."""

_LOOKS = """\
`inspect` prints `{"checkpoint_id": ..., "status": ..., "transcript": [...]}` as its
last line, each field as far as there is one; a transcript of Chat messages, Responses
items or Messages blocks is understood, if it has the ids that the API gives its calls.
It is run after each death and before the next life, where the run parks, before a life
that was paused goes on, and at the end; of a long-lived agent not after each death,
since others run on. Like `status` it is a look of chaoskit's own: no message of it is a
crossing, no fault strikes it, its time is not the trial's, but it is given up after
`life_seconds`. It may only read: no lease, no repair. Where no process of the agent is
left, what it changes in the stores all the same is undone."""

_ENVIRONMENT = """\
`REDIS_URL`, `DATABASE_URL` and `CHAOSKIT_STATE_DIR` are there for an agent whose
`store` is of that kind (`files` and `sqlite` are both a folder; a database in it is
`agent.db` by convention). Large objects of PostgreSQL are not seen, nor brought back
where a world is restored: keep no state there. Everything listens on the loopback
interface only. The API key is a canary: it must turn up nowhere but in requests to the
model, also not in a header, a query or a mail to a tool. No variable tells which life
it is or what fault is coming. The rest of the environment is chaoskit's own, without
`REDIS_URL` and `DATABASE_URL` and with loopback addresses exempt from any proxy; in a
container it is the image's, and as no descriptor can be handed in, CHAOSKIT_MARK_FD is
not set."""

_EFFECTS = """\
An effect's identity is its place in the script, recognised by tool and arguments; two
equal calls are two effects. Deliveries and applications are counted apart. A key that
differs between attempts of one call, or stands for two different calls of a tool, is a
finding of its own; a call without a key is none by itself. Errors have the body
`{"error": {"message": ..., "type": ...}}`."""

_MODEL = """\
The reply depends on the conversation in the request, never on a counter: the turn is
the number of assistant turns since the task began, and ids that the endpoint issued say
where they belong. Past the end the last `say` is repeated, which is a finding, and so
is every request that the real service would refuse."""

_WOBBLE = """\
`call: {hold_seat: {seat: 12A}, or: [{seat: 12a}]}` names other arguments of one logical
call; `or: [{take_bus: {}}]` beside `call: {take_train: {}}` names other steps, each
with as many calls as `call` and with tools of the same class. Any of these forms is
that logical call. The first answer is the script's own; after that the forms take
turns, by how often this turn was answered in this run, a reply that was lost
included."""

_ADDRESSES = """\
An address is `life:service.op[key]#nth:edge`, such as
`0:tools.charge_card[o-1]#1:after`. `life` counts from 0; `*` means every life. `nth`
counts from 1 within life, service, operation and key. In keys the run's id is written
`{run}`, and words that are fresh in each run `{1}`, `{2}` in order of first sight;
characters that the address itself needs are percent-encoded. A schedule joins faults
with ` + `. An operation whose number differs between two fault-free runs, without
changing the outcome, is periodic: faults strike at its first occurrence only, and at
those that change something where both runs agree which these are.

Of a long-lived agent the life of an address is the generation: 0 until the first death
of any of its processes, then 1, and so on, whoever sends the message; `nth` counts over
all of them. So an address does not depend on which of two workers took the run. What
changed nothing in Redis or PostgreSQL, a claim that another had won say, has no number
of its own and no `after`: the next one that tries has its number. A fault strikes the
process that sent the message. A `pause` stops that one, and no new one is started for
it: it goes on when the others have had the run end or park, or nothing has happened
for `life_seconds`, and is ended once it has nothing to do any more."""

_EDGES = (
    ("`before`", "The request is whole; nothing is applied."),
    ("`after`", "The request is applied; the reply is withheld."),
    ("`part:K`", "K pieces of the reply have passed (of a file's write, K bytes)."),
)

_FAULTS = """\
A fault may have an argument, as in `error(429)@0:llm.chat#1:before`; `chaoskit doc
faults` prints which service knows which fault, at which edges, with which arguments. A
reply that is not streamed has two pieces, its halves. Several faults at one place
strike in the schedule's order."""

_VERDICT = """\
One cause is reported once. A verdict is `fail`, `inconclusive` or `pass`, in that order
of weight. A fault that never fired, a fault-free run that does not repeat, a check that
crashed, a run without effects, a `store` that nothing crossed to, an `inspect` that
shows nothing of a fault-free run: inconclusive, never a pass. A fault that found
nothing to do (an `expire` of a key that is not there) is `idle` and counts as not
hit. Where `sweep` or `sample` has laid a fault at a model or a tool, it runs a schedule
up to {tries} times, until all of it has struck: which calls are on their way when a
life dies is a race of the agent's own. So is whether a life of several threads ends by
itself before the kill comes that one of its messages was to die of."""


_LEFT = """\
`report.json`, the same in words (`report.txt`), as a page (`report.html`) and for a CI
system (`junit.xml`: a case for each requirement that was judged); `trials.jsonl`, a
line for each trial with its schedule, outcome and findings; `campaign.json`, with
scenario and manifest as they were tried and what the fault-free runs agree on; and
under `trials/` a folder for each trial: `schedule.txt`, `trial.json` and
`verdict.json` once it is judged, the agent's output by
life (`life-0.out`, `life-0.err`; of a long-lived agent `life-0-worker.1.out`; of the
last looks `inspect.out` and `status.out`), and `history.jsonl`, one event a line,
written as it happens. Every event has `seq`, its place; `t`, seconds since the trial
began; and `life`. In a closure a trial starts in a restored world: its history begins
with the events that led there, and there is no output of those lives.

`chaoskit judge DIR` judges what is there once more, without the agent: by the checks of
the version that runs it, and by nothing but that data. It tells each verdict that is
not the same, byte for byte; its exit code is the campaign's as of now, with the doubts
that the report had of the search. Damaged files are wrong input; a trial without
`trial.json` was cut short, and a campaign without a report proves nothing by a pass;
nor does one of a certificate, whose trials that show nothing were removed
(`thinned.json` says how many).

Which faults struck is read from the history, and a trial whose schedule and `unfired`
do not fit that proves nothing, as it says. The one excuse is a beat that did not come
by, of an operation that the report names as periodic, and what was to strike after it.

Whatever an earlier campaign left in the folder is removed first. One that chaoskit did
not write, that another campaign is writing to, or that holds the scenario, the manifest
or the file of known failures is refused, by each verb that has an `--out`.

None of these files holds a secret, as it stands or escaped (JSON, a URL, HTML, base64,
hex). `[canary]` stands for the key. `[NAME]` stands for the value of a variable of the
environment whose name holds one of {names}, or one of the words {words}; for one that
is a URL with a user in it, and for that user; and for each value of the manifest's
`env`: these from {length} characters on. It stands as well for a password inside the
value of any variable, that of a URL or one that is called {passwords} (`Pwd=...;`,
`?client_secret=...`), from {short} characters on, or from {length} where it is letters
alone, as a word is. What the scenario itself says is none, nor are numbers and the
words of which histories consist. Of a campaign that was interrupted, or failed, this
holds too; where SIGKILL ended chaoskit itself, the output of the lives that were
running then is as they wrote it, until the next campaign empties the folder: remove it
before you hand it on."""

_ALL_HAVE = ("seq", "t", "life")


def faults() -> str:
    """Every service with every fault: what it does there, or why it has no meaning."""
    return "\n\n".join(_fault_tables()) + "\n"


def _fault_tables() -> Iterator[str]:
    yield "# Faults, by service"
    for service, row in FAULTS.items():
        yield f"## `{service}`"
        cells = ((f"`{kind}`", *_cell_of(row[kind])) for kind in FaultKind)
        yield _table(("fault", "edges", "arguments", "does"), cells)


def _cell_of(found: Cell | Empty) -> tuple[str, str, str]:
    if isinstance(found, Empty):
        return "none", "", found.because
    edges = ", ".join("part:K" if edge == "part" else edge for edge in found.edges)
    only = f"; on {', '.join(sorted(found.only))} only" if found.only else ""
    return edges, ", ".join(_arguments(found)), found.does + only


def _arguments(found: Cell) -> Iterator[str]:
    if found.number:
        yield f"{found.number}, or {found.default}"
    elif found.text:
        yield f"{found.text}, or none"
    else:
        yield from found.arguments
        yield from (f"{argument} (by name only)" for argument in found.also)


def _fields(model: type[BaseModel]) -> str:
    return _table(("key", "default", "means"), _rows(model, ""))


def _rows(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        yield f"`{path}`", _default(field), field.description or ""
        inner, named = _model_of(field.annotation), _named_model_of(field.annotation)
        if inner is not None:
            yield from _rows(inner, f"{path}.")
        elif named is not None:
            yield from _rows(named, f"{path}.NAME.")


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, by itself or as one of its options."""
    options = (annotation, *get_args(annotation))
    models = [o for o in options if inspect.isclass(o) and issubclass(o, BaseModel)]
    return models[0] if len(models) == 1 else None


def _named_model_of(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds many of, each with a name."""
    for option in (annotation, *get_args(annotation)):
        if get_origin(option) is Annotated:
            return _named_model_of(get_args(option)[0])
        if get_origin(option) is dict:
            return _model_of(get_args(option)[1])
    return None


def _default(field: FieldInfo) -> str:
    default = field.default
    if field.is_required():
        return "required"
    if (
        default is PydanticUndefined
        or default is None
        or isinstance(default, BaseModel)
    ):
        return ""
    if isinstance(default, tuple):
        return ", ".join(map(str, default))
    return str(default).lower() if isinstance(default, bool) else str(default)


def _variables() -> Iterator[tuple[str, str, str]]:
    for _, service in SERVICES:
        for name, meaning in service.variables.items():
            yield f"`{name}`", service.name, meaning
    for name, meaning in ALWAYS.items():
        yield f"`{name}`", "", meaning


def _allowances() -> Iterator[tuple[str, ...]]:
    for tool_class in ToolClass:
        yield f"`{tool_class}`", *(allowance(tool_class, g) for g in Guarantee)


def _turns() -> Iterator[tuple[str, str]]:
    for name, turn in TURNS.items():
        fields = (str(field.description) for field in turn.model_fields.values())
        yield f"`{name}`", " ".join([str(inspect.getdoc(turn)), *fields])


def _promises() -> Iterator[tuple[str, str]]:
    for promise, check in CHECKS.items():
        text = inspect.getdoc(sys.modules[check.__module__]) or ""
        yield f"`{promise}`", " ".join(text.partition(": ")[2].split())


def _services() -> Iterator[str]:
    for module, service in SERVICES:
        yield f"### `{service.name}`"
        yield inspect.getdoc(module) or ""


def _members(kind: type[StrEnum]) -> Iterator[tuple[str, str]]:
    """Each member with the string that stands below it in the source."""
    lines = [line.strip() for line in inspect.getsource(kind).splitlines()]
    for member in kind:
        at = lines.index(f'{member.name} = "{member.value}"')
        yield f"`{member}`", lines[at + 1].strip('"')


def _events() -> Iterator[tuple[str, str]]:
    for event in EVENTS:
        own = (name for name in event.model_fields if name not in ("kind", *_ALL_HAVE))
        fields = ", ".join(f"`{name}`" for name in own)
        meaning = " ".join((inspect.getdoc(event) or "").split())
        yield f"`{event.model_fields['kind'].default}`", f"{meaning} Fields: {fields}."


def _later() -> Iterator[str]:
    for choice in CHOICES.values():
        if choice.later:
            yield f"{choice.called}: {', '.join(choice.later)}"


def _braced(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((f"`{{{name}}}`", meaning) for name, meaning in names.items())


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
