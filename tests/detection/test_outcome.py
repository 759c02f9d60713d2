"""What counts as found, as an alarm and as green, on reports written by hand."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from chaoskit.campaign.output import OutputError
from chaoskit.campaign.saved import MARK
from chaoskit.certify.verb import _selftest as certify_selftest
from chaoskit.selftest import outcome as results
from chaoskit.selftest.catalogue import Label, Specimen
from chaoskit.selftest.outcome import Outcome
from chaoskit.selftest.run import SelftestError, _folder, selftest, unexpected
from chaoskit.selftest.table import as_table

OWN = "effects/once-across-kill"
SCHEDULE = "kill@0:tools.pay[o-1]#1:after"
CORRECT = Specimen("good", Path(), Label(about="It is right."), "redis", "one-shot", 1)
BROKEN = replace(
    CORRECT, name="bad", label=Label(about="It is wrong.", requirement=OWN)
)


def finding(requirement, *, follows=None, severity="must"):
    return {
        "requirement": requirement,
        "severity": severity,
        "follows": follows,
        "schedule": SCHEDULE,
    }


def came_of(specimen, *findings, verdict="fail", journal=(), faults=2, code=1):
    report = {
        "verdict": verdict,
        "findings": list(findings),
        "trials": 4,
        "kills": faults,
        "faults": {"kill": faults} if faults else {},
        "doubts": [],
    }
    return results.tested(specimen, report, list(journal), "the report", 1.0, code)


def test_a_broken_one_is_found_by_its_own_requirement_alone():
    assert came_of(BROKEN, finding(OWN)).is_as_expected
    assert not came_of(BROKEN, finding("log/no-content")).is_as_expected
    assert not came_of(BROKEN, verdict="pass").is_as_expected
    both = came_of(BROKEN, finding(OWN), finding("log/no-content"))
    assert not both.is_as_expected
    assert both.others == ("log/no-content",)


def test_one_that_crashes_before_any_fault_is_not_caught():
    """What needs a fault to be shown has to be shown by one."""
    needs = replace(BROKEN, label=BROKEN.label.model_copy(update={"shows": SCHEDULE}))
    assert came_of(needs, finding(OWN)).is_as_expected
    assert not came_of(needs, finding(OWN), faults=0).is_as_expected
    crashed = {**finding(OWN), "schedule": ""}
    assert not came_of(needs, crashed).is_as_expected
    of_itself = replace(BROKEN, label=BROKEN.label.model_copy(update={"shows": ""}))
    assert came_of(of_itself, crashed, faults=0).is_as_expected


def test_a_campaign_that_came_to_no_verdict_catches_nothing():
    assert not came_of(BROKEN, finding(OWN), code=4).is_as_expected
    assert not came_of(CORRECT, verdict="pass", code=-9).is_as_expected


def test_what_an_earlier_one_left_is_gone(tmp_path):
    """Nothing of it may be taken for what this one found."""
    with _folder(tmp_path / "out") as folder:
        (folder / "bad").mkdir()
        (folder / "bad" / "report.json").touch()
    with _folder(tmp_path / "out"):
        assert os.listdir(tmp_path / "out") == [MARK]


def test_a_folder_that_no_self_test_wrote_is_left_alone(tmp_path):
    """As with every other verb."""
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "thesis.txt").touch()
    with pytest.raises(OutputError, match="was not written by chaoskit"):
        selftest((), 1, out=tmp_path)
    assert (tmp_path / "bad" / "thesis.txt").exists()


def test_a_second_self_test_is_kept_out_of_the_folder_of_one_that_runs(tmp_path):
    with _folder(tmp_path) as folder:
        (folder / "bad").mkdir()
        with pytest.raises(OutputError, match="another campaign is writing"):
            selftest((), 1, out=tmp_path)
        assert (folder / "bad").exists()


def test_what_follows_from_it_and_what_only_warns_is_no_other():
    followed = finding("progress/ends", follows=OWN)
    warned = finding("log/no-content", severity="should")
    found = came_of(BROKEN, finding(OWN), followed, warned)
    assert found.is_as_expected
    assert found.follows == ("progress/ends",)


def test_a_correct_one_has_to_pass_and_doubt_is_no_pass():
    assert came_of(CORRECT, verdict="pass").is_as_expected
    assert not came_of(CORRECT, verdict="inconclusive").is_as_expected
    assert not came_of(CORRECT, finding(OWN)).is_as_expected


def test_faults_are_counted_up_to_the_trial_that_showed_it_first():
    lines = [
        {"schedule": "", "findings": []},
        {"schedule": f"{SCHEDULE} + {SCHEDULE}", "findings": ["log/no-content"]},
        {"schedule": SCHEDULE, "findings": [OWN]},
        {"schedule": SCHEDULE, "findings": [OWN]},
    ]
    assert came_of(BROKEN, finding(OWN), journal=lines).needed == 3
    assert came_of(BROKEN, finding(OWN), journal=lines[:2]).needed is None


def test_one_that_is_not_as_expected_makes_it_not_green_and_is_told():
    good, bad = came_of(CORRECT, verdict="pass"), came_of(BROKEN, finding(OWN))
    assert Outcome((good, bad), quick=False, seconds=1.0).is_green
    missed = came_of(BROKEN, verdict="pass")
    outcome = Outcome((good, missed), quick=False, seconds=1.0)
    assert not outcome.is_green
    table = as_table(outcome)
    assert "NOT FOUND" in table
    assert "the report" in table
    assert "NOT GREEN: 0 of 1 broken" in table


def test_a_certificate_says_by_which_specimen_the_self_test_is_not_green(monkeypatch):
    """Whoever reads it can run that one again."""
    missed = came_of(BROKEN, verdict="pass")
    alarmed = came_of(CORRECT, finding("log/no-content"))
    monkeypatch.setattr("chaoskit.certify.verb.unexpected", lambda _: (missed, alarmed))
    (why,) = certify_selftest(2)
    assert "bad: pass, good: fail (log/no-content)" in why
    assert "`chaoskit selftest bad good`" in why
    monkeypatch.setattr("chaoskit.certify.verb.unexpected", lambda _: ())
    assert certify_selftest(2) == ()


def test_an_installation_without_specimens_tests_nothing(monkeypatch):
    monkeypatch.setattr("chaoskit.selftest.run.specimens", lambda: ())
    with pytest.raises(SelftestError, match="no specimens are installed"):
        unexpected(1)


def test_nothing_tested_is_not_green():
    assert not Outcome((), quick=False, seconds=0.0).is_green


def test_an_alarm_on_a_correct_one_is_named_in_the_table():
    alarmed = came_of(CORRECT, finding("log/no-content"))
    table = as_table(Outcome((alarmed,), quick=False, seconds=1.0))
    assert "1 alarms on 1 correct" in table
    assert "log/no-content" in table
