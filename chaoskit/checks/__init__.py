"""The checks: one kind of promise per file, each a pure function of a trial.

A check reads the history and yields findings; it never raises on purpose. One that
raises all the same has judged nothing: the verdict is inconclusive, with its error.
"""

from collections.abc import Callable, Iterable, Mapping
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
)
from chaoskit.checks.case import NOTHING, Case, Golden
from chaoskit.checks.causes import linked
from chaoskit.checks.script import Script
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import PromiseId, Scenario
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


def judge(
    trial: Trial, scenario: Scenario, manifest: Manifest, golden: Golden = NOTHING
) -> Judgement:
    """Put one trial before every check that the scenario asks for."""
    case = Case(trial, scenario, manifest, golden)
    findings: list[Finding] = []
    doubts = [f"{fault} was scheduled and never fired" for fault in trial.unfired]
    if trial.ended.outcome == "endless":
        doubts += filter(None, [progress.never_let_to_end(trial, Script(scenario))])
    for promise in scenario.promises or tuple(CHECKS):
        try:
            findings += tuple(CHECKS[promise](case))
        except Exception as error:
            doubts.append(f"the check {promise} crashed: {error!r}")
    notes = list(filter(None, [takeover.blocked(trial)]))
    asked_for = scenario.promises
    log_matters = asked_for is None or PromiseId.LOG in asked_for
    # A life that is struck early may have had no time to say anything.
    is_clean = not trial.schedule.faults
    if is_clean and log_matters and (why := log.silent(trial, manifest)):
        # "All that apply" may leave a promise out; one that was asked for may not.
        (notes if asked_for is None else doubts).append(f"log was not judged: {why}")
    return Judgement(linked(findings, trial), tuple(doubts), tuple(notes))
