"""What a campaign leaves out when it is judged again: as much as then, and no more."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaoskit.campaign.reading import SavedTrial
from chaoskit.campaign.weighed import Again, Outcome
from chaoskit.checks import Judgement, never_fired
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding


def finding(requirement: str, subject: str = "0.0") -> Finding:
    return Finding(requirement.partition("/")[0], requirement, "Broken.", 1, 2, subject)


def outcome(*findings: Finding, doubts: tuple[str, ...] = ()) -> Outcome:
    """Of a campaign of one trial whose report tells of nothing but these doubts."""
    report = SimpleNamespace(trials=1, findings=(), doubts=doubts, strategy="sweep")
    campaign: Any = SimpleNamespace(root=Path(), report=report, only=None, removed=0)
    saved = SavedTrial(Trial("0001", "", Schedule(), ()), True, None, None)
    return Outcome(campaign, (Again(saved, Judgement(findings)),))


@pytest.mark.parametrize(
    ("strategy", "struck", "doubts"),
    [("sweep", True, 0), ("sweep", False, 1), ("replay", True, 1)],
)
def test_a_fault_that_struck_in_another_try_is_no_doubt(strategy, struck, doubts):
    """As in the campaign; but where somebody named it, it had to strike each time."""
    schedule = Schedule.parse("kill@0:tools.pay[o-1]#1:after")
    report = SimpleNamespace(trials=2, findings=(), doubts=(), strategy=strategy)
    campaign: Any = SimpleNamespace(root=Path(), report=report, only=None, removed=0)

    def again(*unfired: Fault) -> Again:
        trial = Trial("0003", "", schedule, (), unfired)
        said = Judgement(doubts=tuple(map(never_fired, unfired)))
        return Again(SavedTrial(trial, True, None, None), said)

    other = again() if struck else again(*schedule.faults)
    found = Outcome(campaign, (again(*schedule.faults), other))
    assert len(found.doubts) == doubts


def told(found: Outcome) -> list[str]:
    return [each.requirement for _, each in found.findings]


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        ("effects/stable-key", "effects/once-across-kill"),
        ("cost/not-asked-again", "human/asked-once"),
    ],
)
def test_what_another_tells_whole_is_left_out_beside_it_only(part, whole):
    """About the same, and where that other one is there."""
    assert told(outcome(finding(part), finding(whole))) == [whole]
    assert told(outcome(finding(part))) == [part]
    assert len(told(outcome(finding(part), finding(whole, "1.0")))) == 2


def test_what_a_run_without_effects_shows_is_doubted():
    doubt = (
        "the fault-free run was failed and applied no effect, so it cannot show that "
        "effects are applied once"
    )
    assert told(outcome(finding("progress/ends"), doubts=(doubt,))) == []
    assert told(outcome(finding("progress/ends"))) == ["progress/ends"]
