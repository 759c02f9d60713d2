"""The tally of a campaign: what is known so far, and the report made of it."""

import statistics
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from chaoskit import __version__
from chaoskit.campaign.missed import doubts_left, made_good
from chaoskit.campaign.options import Options
from chaoskit.checks import REQUIREMENTS, Judgement
from chaoskit.checks.cost import deaths_paid_for, repaid
from chaoskit.explore.baseline import Baseline
from chaoskit.explore.closure import Closure
from chaoskit.explore.treadmill import Treadmill
from chaoskit.loading import Loaded
from chaoskit.model.address import Address, Operation
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import FaultFired, Wreck
from chaoskit.model.report import Crossings, Repaid, Report, Shown
from chaoskit.model.scenario import PromiseId, Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding, Severity

Cause = tuple[str, str]

NOT_SHOWN_AGAIN = "once more did not show it again"
"""How a doubt ends that stands for a finding which a second run did not show."""

NO_EFFECT = "applied no effect, so it cannot show that effects are applied once"
"""How the doubt ends that stands for all findings of runs that did nothing."""

TOLD_BY = {
    "effects/stable-key": "effects/once-across-kill",
    "cost/not-asked-again": "human/asked-once",
}
"""What is told whole by another requirement about the same, where both are broken."""


@dataclass
class Tally:
    """Counts, findings by cause, doubts and notes; each doubt and note once.

    ``tries_again``: what a trial has missed another one may make good (see `missed`);
    ``struck_whole`` are the schedules of which all faults struck at last.
    """

    tries_again: bool = False
    struck_whole: frozenset[Schedule] = frozenset()
    trials: int = 0
    kills: int = 0
    fired: Counter[FaultKind] = field(default_factory=Counter)
    seen: tuple[str, ...] = ()
    shown: dict[Cause, Shown] = field(default_factory=dict)
    baseline: Baseline | None = None
    closure: Closure | None = None
    treadmill: Treadmill | None = None
    volatile: frozenset[str] = frozenset()
    late_periodic: set[Operation] = field(default_factory=set)
    _tokens_repaid: int = 0
    _repaid_for_a_kill: list[float] = field(default_factory=list)
    _doubts: dict[str, None] = field(default_factory=dict)
    _missed: dict[Schedule, tuple[str, ...]] = field(default_factory=dict)
    _notes: dict[str, None] = field(default_factory=dict)
    _hit: set[str] = field(default_factory=set)
    _wrecks: set[str] = field(default_factory=set)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the campaign proves nothing, or not all that it might."""
        missed = (
            reason
            for schedule, reasons in self._missed.items()
            if schedule not in self.struck_whole
            for reason in reasons
        )
        return tuple(dict.fromkeys((*self._doubts, *missed)))

    @property
    def is_failed(self) -> bool:
        """Whether anything was found that makes the verdict fail."""
        return any(
            each.finding.severity is Severity.MUST for each in self.shown.values()
        )

    def doubt(self, reason: str) -> None:
        """Add a reason for which a pass would prove nothing."""
        self._doubts[reason] = None

    def note(self, remark: str) -> None:
        """Add something to know that changes no verdict."""
        self._notes[remark] = None

    def add(self, trial: Trial, judgement: Judgement) -> None:
        """Take in a trial and what the checks say of it."""
        for finding in judgement.findings:
            self._add_finding(trial, finding)
        left = doubts = doubts_left(trial, judgement)
        if self.tries_again:
            self.struck_whole |= made_good([trial])
            left = doubts_left(trial, judgement, frozenset([trial.schedule]))
        missed = (doubt for doubt in doubts if doubt not in left)
        self._missed[trial.schedule] = tuple(missed)
        for reason in left:
            self.doubt(reason)
        for remark in judgement.notes:
            self.note(remark)
        self.kills += len(trial.kills)
        self.fired.update(fault.kind for fault in trial.struck)
        self._hit |= {str(fault.at) for fault in trial.struck}
        self._wrecks |= {wreck.state for wreck in trial.of(Wreck)}
        self._add_price(trial)

    def _add_price(self, trial: Trial) -> None:
        tokens, deaths = repaid(trial), deaths_paid_for(trial)
        self._tokens_repaid += tokens
        if deaths:
            self._repaid_for_a_kill.append(tokens / deaths)

    def _add_finding(self, trial: Trial, finding: Finding) -> None:
        """Keep the smallest schedule for each cause."""
        struck = tuple(fired.seq for fired in trial.of(FaultFired))
        hit = tuple(
            trial.processes[fired.life]
            for fired in trial.of(FaultFired)
            if fired.life in trial.processes
        )
        new = Shown(finding, trial.schedule, trial.name, struck_at=struck, hit=hit)
        old = self.shown.get(finding.cause)
        if old is None:
            self.shown[finding.cause] = new
            return
        best = min(old, new, key=lambda shown: shown.order)
        self.shown[finding.cause] = replace(best, trials=old.trials + 1)

    def report(self, loaded: Loaded, options: Options, seconds: float) -> Report:
        """Everything that is known, ordered: the smallest schedule first."""
        search, manifest = loaded.scenario.search, loaded.manifest
        version = f" {manifest.version}" if manifest.version else ""
        return Report(
            chaoskit=__version__,
            scenario=loaded.scenario.name,
            scenario_path=str(loaded.scenario_path),
            agent=f"{manifest.name}{version}",
            store=manifest.store.value,
            seed=search.seed,
            strategy=search.strategy.value,
            trials=self.trials,
            kills=self.kills,
            faults={kind.value: self.fired[kind] for kind in sorted(self.fired)},
            crossings=self._crossings(),
            wrecks=len(self._wrecks) or None,
            states=len(self.closure.states) if self.closure else None,
            depth=self.closure.depth if self.closure else search.depth,
            endless=self._endless(),
            seconds=round(seconds, 3),
            tokens_repaid=self._repaid(),
            findings=self._findings(),
            doubts=self.doubts,
            notes=tuple(self._notes),
            periodic=self._periodic(),
            volatile=tuple(sorted(self.volatile)),
            volatile_listed=loaded.scenario.volatile,
            out=str(options.out),
            overrides=options.overrides,
            judged=_judged(loaded.scenario),
        )

    def _endless(self) -> str:
        closure = self.closure
        return "" if closure is None or closure.ended else closure.why_endless()

    def _findings(self) -> tuple[Shown, ...]:
        """The findings in order, one for each cause.

        A key that changes is what made a call apply twice: where both were shown, by
        whatever schedules, the second tells the whole story. So it is with a gate that
        is asked again: the model is asked for it first.
        """
        shown = (
            each
            for (requirement, subject), each in self.shown.items()
            if (TOLD_BY.get(requirement, ""), subject) not in self.shown
        )
        return tuple(sorted(shown, key=lambda each: each.order))

    def _repaid(self) -> Repaid:
        prices = self._repaid_for_a_kill
        if not prices:
            return Repaid(self._tokens_repaid)
        return Repaid(
            self._tokens_repaid,
            len(prices),
            min(prices),
            statistics.median(prices),
            max(prices),
        )

    def _periodic(self) -> tuple[str, ...]:
        known = self.baseline.periodic if self.baseline else frozenset()
        return tuple(sorted(map(str, known | self.late_periodic)))

    def _crossings(self) -> Crossings:
        """Closure starts a recovery at every edge, by restoring what a kill leaves.

        A treadmill strikes most of them in a later life.
        """
        seen = [
            address
            for address in self.seen
            if (at := Address.parse(address)).nth == 1
            or at.operation not in self.late_periodic
        ]
        reached: Collection[str] = seen if self.closure is not None else self._hit
        if self.treadmill is not None:
            reached = self.treadmill.reached
        missed = tuple(address for address in seen if address not in reached)
        return Crossings(len(seen), len(seen) - len(missed), missed)


def _judged(scenario: Scenario) -> tuple[str, ...]:
    promises = scenario.promises or tuple(PromiseId)
    return tuple(r for r in REQUIREMENTS if r.partition("/")[0] in promises)
