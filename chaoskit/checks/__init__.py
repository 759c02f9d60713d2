"""The checks: one kind of promise per file, each a pure function of a trial.

A check reads the history and yields findings; it never raises on purpose. One that
raises all the same has judged nothing: the verdict is inconclusive, with its error.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from chaoskit.checks import (
    answer,
    cost,
    effects,
    fence,
    human,
    log,
    loud,
    progress,
    secrets,
    store,
    takeover,
    transcript,
    waits,
)
from chaoskit.checks.case import NOTHING, Case, Golden
from chaoskit.checks.causes import linked
from chaoskit.checks.script import Script
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import PromiseId, Scenario
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding, Severity, Verdict

Check = Callable[[Case], Iterable[Finding]]

MODULES = {
    PromiseId.EFFECTS: effects,
    PromiseId.PROGRESS: progress,
    PromiseId.ANSWER: answer,
    PromiseId.TRANSCRIPT: transcript,
    PromiseId.COST: cost,
    PromiseId.STORE: store,
    PromiseId.LOG: log,
    PromiseId.FENCE: fence,
    PromiseId.HUMAN: human,
    PromiseId.LOUD: loud,
    PromiseId.SECRETS: secrets,
}
CHECKS: dict[PromiseId, Check] = {
    promise: module.check for promise, module in MODULES.items()
}
REQUIREMENTS: Mapping[str, str] = {
    requirement: text
    for module in MODULES.values()
    for requirement, text in module.REQUIREMENTS.items()
}
"""What an agent must do, in a sentence, by requirement id."""


@dataclass(frozen=True)
class Judgement:
    """What the checks say of one trial.

    ``doubts`` are reasons for which the trial proves nothing, in words; ``notes`` say
    what was not judged, and why.
    """

    findings: tuple[Finding, ...] = ()
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """Fail outweighs inconclusive, which outweighs pass."""
        if any(finding.severity is Severity.MUST for finding in self.findings):
            return Verdict.FAIL
        return Verdict.INCONCLUSIVE if self.doubts else Verdict.PASS


def never_fired(fault: Fault) -> str:
    """The doubt that a fault leaves which found nothing to strike."""
    return f"{fault} was scheduled and never fired"


def judge(
    trial: Trial, scenario: Scenario, manifest: Manifest, golden: Golden = NOTHING
) -> Judgement:
    """Put one trial before every check that the scenario asks for."""
    case = Case(trial, scenario, manifest, golden)
    findings: list[Finding] = []
    doubts = list(map(never_fired, trial.unfired))
    notes: list[str] = []
    for limit, told in ((_proves_nothing, doubts), (_not_judged, notes)):
        try:
            told += tuple(limit(case))
        except Exception as error:
            doubts.append(f"what the trial can prove is not known: {error!r}")
    for promise in scenario.promises or tuple(CHECKS):
        try:
            findings += tuple(CHECKS[promise](case))
        except Exception as error:
            doubts.append(f"the check {promise} crashed: {error!r}")
    return Judgement(linked(findings, trial), tuple(doubts), tuple(notes))


def _proves_nothing(case: Case) -> Iterator[str]:
    """Why a trial put nothing to the test, or not what it was to."""
    trial, scenario = case.trial, case.scenario
    if trial.ended.outcome == "endless":
        yield from filter(None, [progress.never_let_to_end(trial, Script(scenario))])
    if not trial.schedule.faults and (why := store.unshown(trial)):
        yield (
            f"`inspect` showed nothing of the fault-free run: {why}. Mend the command, "
            "or leave it out of the manifest: then nothing of the store is judged"
        )
    # "All that apply" may leave a promise out; one that was asked for may not.
    if scenario.promises is not None and PromiseId.LOG in scenario.promises:
        yield from _silent_log(case)


def _not_judged(case: Case) -> Iterator[str]:
    """What was left out, and why."""
    late = waits.unjudged(case.trial, case.scenario)
    yield from filter(None, [takeover.blocked(case.trial), late])
    if case.trial.schedule.faults:
        return
    unseen = store.unseen(case.trial, case.manifest)
    if unseen and PromiseId.STORE in (case.scenario.promises or PromiseId):
        yield f"store was not judged: {unseen}"
    if case.scenario.promises is None:
        yield from _silent_log(case)


def _silent_log(case: Case) -> Iterator[str]:
    """A life that is struck early may have had no time to say anything."""
    why = log.silent(case.trial, case.manifest)
    if why and not case.trial.schedule.faults:
        yield f"log was not judged: {why}"
