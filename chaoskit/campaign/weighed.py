"""Trials that were judged again, and what the campaign says of itself by that.

A finding is left out where a campaign leaves one out, and nowhere else: where another
tells it whole, or where a doubt of the report stands for it.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from chaoskit.campaign.missed import TRYING, doubts_left, made_good
from chaoskit.campaign.reading import SavedCampaign, SavedTrial
from chaoskit.campaign.saved import CONFIRMING, ReportFile, verdict_text
from chaoskit.campaign.tally import NO_EFFECT, NOT_SHOWN_AGAIN, TOLD_BY, Cause
from chaoskit.checks import Judgement
from chaoskit.model.scenario import PromiseId
from chaoskit.model.schedule import Schedule
from chaoskit.model.verdict import Finding, Severity, Verdict

NOT_FINISHED = "the campaign was cut short: it left no report"


@dataclass(frozen=True)
class Again:
    """One trial, judged then and now."""

    before: SavedTrial
    judgement: Judgement

    @property
    def text(self) -> str:
        """Its `verdict.json` as of now."""
        return verdict_text(self.judgement)

    @property
    def is_same(self) -> bool:
        """Whether the verdict is the same, byte for byte."""
        return self.text == self.before.verdict


@dataclass(frozen=True)
class Outcome:
    """A campaign, or one trial of it, judged again.

    ``cut`` are trials that a killed harness had not judged; ``promises`` are those that
    were judged by, all of the scenario's if there are none.
    """

    campaign: SavedCampaign
    trials: tuple[Again, ...]
    cut: tuple[str, ...] = ()
    promises: tuple[PromiseId, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """As of the campaign: fail outweighs inconclusive, which outweighs pass."""
        if any(f.severity is Severity.MUST for _, f in self.findings):
            return Verdict.FAIL
        return Verdict.INCONCLUSIVE if self.doubts else Verdict.PASS

    @property
    def changed(self) -> tuple[Again, ...]:
        """The trials that are judged otherwise; none of them by some promises only."""
        if self.promises:
            return ()
        return tuple(each for each in self.trials if not each.is_same)

    @property
    def findings(self) -> tuple[tuple[str, Finding], ...]:
        """One of each cause that counts, with its trial, in the trials' order.

        What the campaign itself leaves out is left out again, and nothing else: a
        report that does not tell of a finding takes none away.
        """
        first: dict[Cause, tuple[str, Finding]] = {}
        for each in self._searched:
            for finding in each.judgement.findings:
                first.setdefault(finding.cause, (each.before.trial.name, finding))
        for each in self.trials:
            for finding in each.judgement.findings:
                if finding.cause in self._reported:
                    first.setdefault(finding.cause, (each.before.trial.name, finding))
        told = {*first, *(self._reported if self.promises else ())}
        return tuple(
            (trial, finding)
            for cause, (trial, finding) in first.items()
            if not _is_told_by(told, cause) and not self._is_doubted(cause)
        )

    @property
    def doubts(self) -> tuple[str, ...]:
        """The campaign's own doubts, as saved, and those of its trials, as of now."""
        report = self._report
        told: Collection[str] = () if report is None else report.doubts
        known = {
            doubt
            for each in self.trials
            if self._report and each.before.found
            for doubt in each.before.found.doubts
        }
        good = self._made_good
        now = [
            doubt
            for each in self._searched
            for doubt in doubts_left(each.before.trial, each.judgement, good)
        ]
        own = [doubt for doubt in told if doubt not in known]
        unreported = self._only_confirming()
        return tuple(dict.fromkeys((*own, *now, *unreported, *self._why_unfinished())))

    @property
    def _made_good(self) -> frozenset[Schedule]:
        """Only where a campaign has tried them again by its own strategy."""
        report = self._report
        if report is None or report.strategy not in TRYING:
            return frozenset()
        return made_good(each.before.trial for each in self._searched)

    @property
    def _searched(self) -> tuple[Again, ...]:
        """The trials that a campaign goes by; those that confirm only show again."""
        if self._report is None:
            return self.trials
        return tuple(each for each in self.trials if not _confirms(each))

    def _only_confirming(self) -> Iterator[str]:
        """What only trials show by which the campaign looked for something else."""
        counted = {finding.cause for _, finding in self.findings}
        searched = {f.cause for each in self._searched for f in each.judgement.findings}
        for each in self.trials:
            for finding in each.judgement.findings:
                if finding.cause not in counted | searched:
                    name, requirement = each.before.trial.name, finding.requirement
                    yield f"trial {name} shows {requirement}, and the report does not"

    def _is_doubted(self, cause: Cause) -> bool:
        """Whether the campaign has put a doubt in the place of a finding."""
        if self._report is None or cause in self._reported:
            return False
        head = f"{cause[0]} was broken "
        return any(
            doubt.endswith(NO_EFFECT)
            or (doubt.startswith(head) and doubt.endswith(NOT_SHOWN_AGAIN))
            for doubt in self._report.doubts
        )

    def _why_unfinished(self) -> Iterator[str]:
        if self.campaign.only is None and self.campaign.report is None:
            yield NOT_FINISHED
        here, report = len(self.trials) + len(self.cut), self._report
        removed = self.campaign.removed
        if report is not None and removed:
            yield _thinned(report.trials, removed)
        if report is not None and here + removed != report.trials:
            yield f"the report counts {report.trials} trials, and {here} are here"
        for name in self.cut:
            yield f"trial {name} was cut short before it was judged"

    @property
    def _report(self) -> ReportFile | None:
        """The report, where it is of what is judged here."""
        return self.campaign.report if self.campaign.only is None else None

    @property
    def _reported(self) -> set[Cause]:
        return {each.cause for each in self._report.findings} if self._report else set()


def _thinned(trials: int, removed: int) -> str:
    """A certificate keeps few: that it shows nothing else rests on the rest."""
    return (
        f"of {trials} trials only those were kept that show something, and a "
        f"fault-free one: nothing can be said now about the other {removed}; what was "
        "said of them then is in trials.jsonl and report.json"
    )


def _confirms(each: Again) -> bool:
    return each.before.trial.name.startswith(CONFIRMING)


def _is_told_by(shown: Collection[Cause], cause: Cause) -> bool:
    """Whether another finding tells it whole, as in a campaign's report."""
    requirement, subject = cause
    return (TOLD_BY.get(requirement, ""), subject) in shown
