"""The command line: verbs, exit codes, and a progress bar where somebody looks."""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from chaoskit import __version__
from chaoskit.campaign import (
    WRONG_INPUT,
    Listener,
    Options,
    Progress,
    given_server,
    jobs_by_default,
    run_campaign,
)
from chaoskit.loading import (
    Kind,
    Loaded,
    load_scenario,
    schema,
    unfit,
)
from chaoskit.model.manifest import Store
from chaoskit.model.scenario import PromiseId, Strategy, fault_flaw, search_flaws
from chaoskit.model.schedule import Schedule
from chaoskit.model.verdict import Verdict
from chaoskit.report import as_text
from chaoskit.report.show import show

VERDICT_EXITS = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 3}
EXIT_WRONG_INPUT = 2
EXIT_OWN_FAULT = 4
EXIT_INTERRUPTED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Kill resumable agents at exact crossings, and prove that they do not mind.",
)
doc = typer.Typer(no_args_is_help=True, help="Print reference texts.")
app.add_typer(doc, name="doc")

Scenario = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A YAML file.")]
Agent = Annotated[
    Path | None, typer.Option(help="The manifest of another agent to try.")
]
StoreName = Annotated[
    Store | None, typer.Option("--store", help="Another store than the manifest's.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Where the report goes; default: chaoskit-out/NAME, or NAME-replay."
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, max=64, help="Trials at the same time; default: one a core."),
]


@app.command()
def run(
    scenario: Scenario,
    agent: Agent = None,
    store: StoreName = None,
    strategy: Annotated[
        Strategy | None, typer.Option(help="Another search than the scenario's.")
    ] = None,
    depth: Annotated[int | None, typer.Option(min=1, max=10)] = None,
    seed: Annotated[int | None, typer.Option(help="Of all randomness.")] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="The most to run.")] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            help="Try this instead of the scenario's faults, such as 'error(429)'; "
            "may be given again for another."
        ),
    ] = None,
    out: Out = None,
    jobs: Jobs = None,
    thorough: Annotated[
        bool,
        typer.Option("--thorough", help="Closure: run every recovery to its end."),
    ] = False,
) -> None:
    """Run a scenario: kill, restart, judge, report."""
    search = {"strategy": strategy, "depth": depth, "seed": seed, "trials": trials}

    def work() -> int:
        loaded = _searching(load_scenario(scenario, agent, store), search)
        if fault:
            loaded = _trying(loaded, fault)
        _fits_together(loaded)
        if strategy is Strategy.REPLAY and not loaded.scenario.search.schedules:
            raise typer.BadParameter("to run one schedule, use chaoskit replay")
        more = {"thorough": thorough, "overrides": _overrides(agent, store)}
        return _campaign(loaded, _options(loaded, out, jobs, **more))

    _carefully(work)


@app.command()
def replay(
    scenario: Scenario,
    schedule: Annotated[
        str,
        typer.Argument(help='Such as "kill@0:tools.pay[o-1]#1:after"; "" for none.'),
    ],
    agent: Agent = None,
    store: StoreName = None,
    out: Out = None,
    jobs: Jobs = None,
    times: Annotated[int, typer.Option(min=1, help="How often.")] = 1,
) -> None:
    """Run one schedule of a scenario again."""
    try:
        parsed = Schedule.parse(schedule)
    except ValueError as error:
        raise typer.BadParameter(f"the schedule is wrong: {error}") from error

    def work() -> int:
        search = {"strategy": Strategy.REPLAY, "trials": times}
        loaded = _searching(load_scenario(scenario, agent, store), search)
        more = {"schedules": (parsed,), "overrides": _overrides(agent, store)}
        return _campaign(loaded, _options(loaded, out, jobs, times=times, **more))

    _carefully(work)


@app.command()
def selftest(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Only these specimens.")
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Only what shows each broken one, and few kills."),
    ] = False,
    jobs: Jobs = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Keep here what it leaves; without it, nothing is kept."),
    ] = None,
) -> None:
    """Find agents that are broken on purpose, and raise no alarm on correct ones."""
    from chaoskit.selftest.verb import verb

    _carefully(lambda: verb(names or (), jobs, quick=quick, out=out))


@app.command("judge")
def judge_again(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Of a campaign, or of one of its trials."),
    ],
    promise: Annotated[
        list[PromiseId] | None,
        typer.Option(help="Judge by this promise only; may be given again."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Leave each trial's verdict here, as of now.")
    ] = None,
) -> None:
    """Judge saved trials once more, without their agent."""
    from chaoskit.campaign import again

    def work() -> int:
        outcome = again.judge_folder(folder, promise or ())
        if out is not None:
            again.write(outcome, out)
        show(again.as_text(outcome))
        return VERDICT_EXITS[outcome.verdict]

    _carefully(work)


@app.command()
def certify(
    scenarios: Annotated[
        list[Path], typer.Argument(metavar="SCENARIO...", help="The certifying set.")
    ],
    out: Annotated[Path, typer.Option(help="Where the certificate goes.")],
    agent: Agent = None,
    store: StoreName = None,
    level: Annotated[str, typer.Option(help="Try no higher than this.")] = "L4",
    durability: Annotated[
        str | None, typer.Option(help="The store's settings, as in a scenario.")
    ] = None,
    known: Annotated[
        Path | None, typer.Option(help="A YAML file of known failures.")
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(min=1, help="The most trials of a campaign; one cut is none."),
    ] = None,
    jobs: Jobs = None,
) -> None:
    """Find the highest level that an agent on a store reaches, and certify it."""
    from chaoskit.certify import Asked
    from chaoskit.certify.verb import verb

    asked = Asked(
        tuple(scenarios), out, agent, store, durability, level, known, budget, jobs
    )
    _carefully(lambda: verb(asked, _progress()))


@doc.command("contract")
def doc_contract() -> None:
    """Print the contract between chaoskit and agents, as this version keeps it."""
    show(_reference().contract())


@doc.command("crossings")
def doc_crossings() -> None:
    """Print every service with its operations and edges."""
    show(_reference().crossings())


@doc.command("faults")
def doc_faults() -> None:
    """Print which service knows which fault, and why the others make no sense."""
    show(_reference().faults())


def _reference() -> ModuleType:
    """The module of reference texts: it imports every service there is."""
    from chaoskit import contract

    return contract


@doc.command("schema")
def doc_schema(
    kind: Annotated[
        Kind, typer.Argument(help="Of which file: scenario or manifest.")
    ] = "scenario",
) -> None:
    """Print the JSON Schema of a scenario or of a manifest, for editors."""
    show(json.dumps(schema(kind), indent=2) + "\n")


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Print it.")] = False,
) -> None:
    if version:
        print(f"chaoskit {__version__}")
        raise typer.Exit


def main() -> None:
    """The program: run a verb, and exit with what the contract says."""
    sys.exit(run_words(sys.argv[1:]))


def run_words(words: list[str]) -> int:
    """Run a verb; returns the exit code. Wrong input never raises."""
    try:
        app(words, prog_name="chaoskit")
    except SystemExit as end:
        return int(end.code or 0)
    raise AssertionError("typer ends with SystemExit")


def _carefully(work: Callable[[], int]) -> NoReturn:
    """Do the work of a verb; whatever comes of it becomes an exit code."""
    with _interrupted_once():
        try:
            code = work()
        except WRONG_INPUT as error:
            code = _say(str(error), EXIT_WRONG_INPUT)
        except KeyboardInterrupt:
            code = _say("Interrupted; nothing of it is left running.", EXIT_INTERRUPTED)
        except BrokenExecutor:
            said = (
                "A worker of chaoskit died: it was killed, or memory ran out. "
                "The trials that were judged before are in the output folder."
            )
            code = _say(said, EXIT_OWN_FAULT)
        except typer.BadParameter:
            raise
        except Exception:
            traceback.print_exc()
            said = "This is a fault of chaoskit itself, not of the agent."
            code = _say(said, EXIT_OWN_FAULT)
    raise typer.Exit(code)


def _say(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


@contextmanager
def _interrupted_once() -> Iterator[None]:
    """Ctrl-C and SIGTERM end a campaign cleanly; a second one does not spoil that."""
    before = {signum: signal.getsignal(signum) for signum in SIGNALS}
    heard = [signum for signum in SIGNALS if before[signum] != signal.SIG_IGN]

    def interrupt(*_: object) -> None:
        for signum in heard:
            signal.signal(signum, signal.SIG_IGN)
        raise KeyboardInterrupt

    for signum in heard:
        signal.signal(signum, interrupt)
    try:
        yield
    finally:
        for signum in heard:
            signal.signal(signum, before[signum])


def _searching(loaded: Loaded, changes: dict[str, Any]) -> Loaded:
    """The same scenario with another search."""
    update = {name: value for name, value in changes.items() if value is not None}
    search = loaded.scenario.search.model_copy(update=update)
    scenario = loaded.scenario.model_copy(update={"search": search})
    return replace(loaded, scenario=scenario)


def _trying(loaded: Loaded, faults: Sequence[str]) -> Loaded:
    """The same scenario with other faults."""
    for text in faults:
        if why := fault_flaw(text):
            raise typer.BadParameter(why)
    update = {"faults": tuple(dict.fromkeys(faults))}
    return replace(loaded, scenario=loaded.scenario.model_copy(update=update))


def _fits_together(loaded: Loaded) -> None:
    """What the command line has changed must still make sense."""
    scenario = loaded.scenario
    for flaw in search_flaws(scenario.search.strategy, scenario.faults):
        raise typer.BadParameter(f"expected {flaw.expected}; {flaw.hint}")
    if why := unfit(scenario, loaded.manifest):
        raise typer.BadParameter(why)


def _options(
    loaded: Loaded, out: Path | None, jobs: int | None, **more: Any
) -> Options:
    store = loaded.manifest.store
    if jobs is not None and jobs > 1 and _has_a_port(loaded):
        raise typer.BadParameter(
            "expected --jobs 1: the manifest's `ready` names a port, and on one port "
            "only one trial at a time can have an agent listen"
        )
    # A replay must not destroy the campaign whose report asked for it.
    suffix = "-replay" if "schedules" in more else ""
    return Options(
        out=out or Path("chaoskit-out") / f"{loaded.scenario.name}{suffix}",
        jobs=jobs or (1 if _has_a_port(loaded) else jobs_by_default(store)),
        server_url=given_server(store),
        **more,
    )


def _has_a_port(loaded: Loaded) -> bool:
    return any(process.ready for _, process in loaded.manifest.fleet)


def _overrides(agent: Path | None, store: Store | None) -> tuple[str, ...]:
    words = () if agent is None else ("--agent", str(agent))
    return words if store is None else (*words, "--store", store.value)


def _campaign(loaded: Loaded, options: Options) -> int:
    with _progress() as listener:
        report = run_campaign(loaded, options, listener)
    show(as_text(report))
    return VERDICT_EXITS[report.verdict]


@contextmanager
def _progress() -> Iterator[Listener]:
    """A bar on a terminal, a line for each stage elsewhere; both on standard error."""
    console = Console(stderr=True)
    if not console.is_terminal or "CI" in os.environ:
        yield _Lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[findings]} findings"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None, findings=0)

        def show(now: Progress) -> None:
            bar.update(
                task,
                description=now.stage,
                completed=now.done,
                total=now.total,
                findings=now.findings,
            )

        yield show


class _Lines:
    """Says when a stage begins, and no more."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.stage = ""

    def __call__(self, now: Progress) -> None:
        if now.stage != self.stage:
            self.stage = now.stage
            self.console.print(f"{now.stage} ...", highlight=False)
