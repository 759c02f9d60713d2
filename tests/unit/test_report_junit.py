"""`junit.xml`: what CI systems read of it, and that no text can break it."""

import re
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.report import Report, Shown
from chaoskit.model.schedule import Schedule
from chaoskit.model.verdict import Finding, Severity
from chaoskit.report import as_junit

SCHEDULE = Schedule.parse("kill@0:tools.pay[o-1]#1:after")
ID = "effects/once-across-kill"
TWICE = Finding("effects", ID, "Paid twice.", 1, 2, "pay", (4, 9))
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)


def report(*findings, **more):
    fields = {"strategy": "sweep", "seed": 0, "scenario_path": "s.yaml", **more}
    named = {"chaoskit": "1", "scenario": "s", "agent": "a", "store": "redis"}
    shown = tuple(Shown(each, SCHEDULE, "0007") for each in findings)
    judged = (ID, "log/closed", "progress/ends")
    return Report(**named, **fields, findings=shown, judged=judged)


def parsed(made):
    """Its suite and its cases by name, checked as the common schema would."""
    root = ElementTree.fromstring(as_junit(made).encode())
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    assert re.fullmatch(r"\d+\.\d{3}", suite.get("time"))
    assert {"name", "tests", "failures", "errors", "skipped"} <= set(suite.keys())
    told = Counter(child.tag for case in suite for child in case)
    assert suite.get("tests") == str(len(suite))
    for attribute, tag in COUNTED.items():
        assert suite.get(attribute) == str(told[tag])
    for case in suite:
        assert set(case.keys()) == {"name", "classname", "time"}
        assert sum(child.tag in COUNTED.values() for child in case) <= 1
    assert told.keys() <= {*COUNTED.values(), "system-out"}
    return suite, {case.get("name"): case for case in suite}


COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def test_each_requirement_that_was_judged_is_a_case():
    _, cases = parsed(report())
    assert list(cases) == [ID, "log/closed", "progress/ends"]
    assert all(len(case) == 0 for case in cases.values())


def test_a_finding_fails_its_case_and_tells_its_schedule():
    suite, cases = parsed(report(TWICE))
    failure = cases[ID].find("failure")
    assert (failure.get("message"), failure.get("type")) == ("Paid twice.", ID)
    assert str(SCHEDULE) in failure.text
    assert "chaoskit replay s.yaml" in failure.text
    assert suite.get("failures") == "1"


def test_findings_of_one_requirement_are_one_failure():
    other = replace(TWICE, message="Held twice.", subject="hold")
    suite, cases = parsed(report(TWICE, other))
    assert suite.get("failures") == "1"
    assert "Held twice." in cases[ID].find("failure").text


def test_a_warning_is_told_and_fails_nothing():
    _, cases = parsed(report(replace(TWICE, severity=Severity.SHOULD)))
    assert [child.tag for child in cases[ID]] == ["system-out"]
    assert "Paid twice." in cases[ID][0].text


def test_a_doubt_is_an_error():
    suite, cases = parsed(report(doubts=("it never fired", "and more")))
    error = cases["conclusive"].find("error")
    assert error.get("message") == "it never fired"
    assert "and more" in error.text
    assert suite.get("errors") == "1"


def test_what_was_not_judged_did_not_pass():
    why = "the agent writes no log"
    suite, cases = parsed(report(notes=(f"log was not judged: {why}", "other")))
    assert cases["log/closed"].find("skipped").get("message") == why
    assert len(cases[ID]) == 0
    assert suite.get("skipped") == "1"


def test_a_requirement_that_nobody_listed_is_a_case_where_it_is_broken():
    _, cases = parsed(report(replace(TWICE, requirement="new/one")))
    assert cases["new/one"].find("failure") is not None


@given(ANY_TEXT, ANY_TEXT)
def test_no_text_breaks_it(said, other):
    """Control characters, halves of surrogate pairs, markup."""
    hostile = replace(TWICE, message=f"{said}]]></failure>", expected=other)
    made = report(hostile, notes=(said,), doubts=(other,))
    parsed(replace(made, scenario=f"s{said}"))
    assert as_junit(made) == as_junit(made)
