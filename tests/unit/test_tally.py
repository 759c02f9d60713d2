"""The tally: what trials cost, and what is told whole by another finding."""

from dataclasses import replace

import pytest

from chaoskit.campaign.options import Options
from chaoskit.campaign.tally import Tally
from chaoskit.checks import Judgement
from chaoskit.loading import Loaded
from chaoskit.model.report import Repaid
from chaoskit.model.verdict import Finding

PRICE = {"prompt_tokens": 10, "completion_tokens": 5}
NOTHING = Judgement()


@pytest.fixture
def reported(make_scenario, make_manifest, tmp_path):
    def report(*trials, judgement=NOTHING):
        tally = Tally()
        for trial in trials:
            tally.add(trial, judgement)
        path = tmp_path / "agent.yaml"
        loaded = Loaded(make_scenario(), make_manifest(), path, path)
        return tally.report(loaded, Options(out=tmp_path), 1.0)

    return report


def killed(told, times):
    """Each life but the last one loses its reply."""
    story = told()
    for _ in range(times):
        story.ask(0, **PRICE).killed().resume()
    return story.ask(0, **PRICE).done().trial()


def test_what_each_kill_costs_is_told_over_all_trials(told, reported):
    trials = [killed(told, times) for times in (0, 1, 2)]
    cheap = told().ask(0, **PRICE).killed().resume().ask(1, **PRICE).done().trial()
    paid = reported(*trials, cheap).tokens_repaid
    assert paid == Repaid(45, 3, 0.0, 15.0, 15.0)


def test_without_a_kill_there_is_only_the_sum(told, reported):
    assert reported(killed(told, 0)).tokens_repaid == Repaid(0)
    story = told().ask(0, **PRICE).crashed().resume().ask(0, **PRICE)
    assert reported(story.done().trial()).tokens_repaid == Repaid(15)


AGAIN = Finding("cost", "cost/not-asked-again", "Again.", 1, 2, subject="turn 0")
TWICE = Finding("human", "human/asked-once", "Twice.", 1, 2, subject="turn 0")


def test_a_gate_that_is_asked_again_costs_a_reply_and_that_is_one_cause(told, reported):
    """Even where the schedule that shows the one does not show the other."""

    def told_by(*findings):
        judgement = Judgement(findings)
        report = reported(killed(told, 1), judgement=judgement)
        return [each.finding.requirement for each in report.findings]

    assert told_by(AGAIN, TWICE) == ["human/asked-once"]
    assert told_by(AGAIN) == ["cost/not-asked-again"]
    assert len(told_by(replace(AGAIN, subject="turn 1"), TWICE)) == 2
