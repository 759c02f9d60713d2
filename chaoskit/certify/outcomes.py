"""What a campaign's report means for a level: its breaches and its doubts. Pure."""

import re

from chaoskit.campaign.search import NOT_FOLLOWED, NOTHING_STRUCK
from chaoskit.certify.evidence import Breach, Outcome
from chaoskit.certify.revision import Campaign
from chaoskit.explore.words import ANY, RANDOM
from chaoskit.model.report import Report

_RUN_ID = re.compile(r"\brun-[0-9a-f]{8}\b")


def outcome(scenario: str, campaign: Campaign, report: Report) -> Outcome:
    """What a campaign's report says, for the evaluation."""
    doubts = [
        doubt for doubt in report.doubts if not _is_meant(doubt, campaign, report)
    ]
    if campaign.has_targets and report.crossings.missed and not doubts:
        missed = report.crossings.missed
        doubts.append(f"{len(missed)} crossings were not hit, such as {missed[0]}")
    breaches = tuple(
        Breach(
            shown.finding.requirement,
            plain_text(shown.finding.message),
            str(shown.schedule),
            report.replay_of(shown.schedule),
            plain_text(shown.finding.subject),
        )
        for shown in report.findings
    )
    return Outcome(
        scenario, campaign.id, breaches, tuple(plain_text(doubt) for doubt in doubts)
    )


def is_whole(found: Outcome, report: Report) -> bool:
    """Whether a closure visited every state that it was to reach, and found nothing.

    Where it found something, if only a warning, it may have left worlds out.
    """
    left_out = any(NOT_FOLLOWED in note for note in report.notes)
    is_clean = not (found.doubts or found.breaches or report.endless or left_out)
    return is_clean and report.states is not None


def plain_text(text: str) -> str:
    """A text without a run's own id and words that look random, the same in each."""
    return RANDOM.sub(ANY, _RUN_ID.sub("{run}", text))


def _is_meant(doubt: str, campaign: Campaign, report: Report) -> bool:
    """Whether a doubt is what the campaign is there for, or may come to."""
    if campaign.schedules == "clean":
        return doubt == NOTHING_STRUCK
    return campaign.or_depth and doubt == report.endless
