"""Page, JUnit's XML and badge: what they say, and that nothing an agent says runs."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.report import Report, Shown
from chaoskit.model.schedule import Schedule
from chaoskit.model.verdict import Finding, Severity
from chaoskit.report import as_html, as_junit, badge
from chaoskit.report.timeline import ROWS_MAX, rows

SCHEDULE = Schedule.parse("kill@0:tools.pay[o-1]#1:after")
PAID_TWICE = Finding(
    "effects", "effects/once-across-kill", "Paid twice.", 1, 2, "pay", (4, 9)
)
ID = "effects/once-across-kill"


def report(*findings, **more):
    shown = tuple(Shown(each, SCHEDULE, "0007") for each in findings)
    fields = {"strategy": "sweep", "seed": 0, "scenario_path": "s.yaml", **more}
    named = {"chaoskit": "1", "scenario": "s", "agent": "a", "store": "redis"}
    return Report(**named, **fields, findings=shown, judged=(ID, "progress/ends"))


def cases(text):
    suite = ElementTree.fromstring(text.encode())[0]
    return suite, {case.get("name"): case for case in suite}


def test_junit_has_a_case_for_each_requirement_that_was_judged():
    suite, found = cases(as_junit(report()))
    assert list(found) == [ID, "progress/ends"]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == (
        *("2", "0", "0"),
    )


def test_junit_tells_a_finding_and_how_to_see_it_again():
    suite, found = cases(as_junit(report(PAID_TWICE)))
    failure = found[ID].find("failure")
    assert failure.get("message") == "Paid twice."
    assert "chaoskit replay s.yaml" in failure.text
    assert found["progress/ends"].find("failure") is None
    assert suite.get("failures") == "1"


def test_junit_fails_nobody_for_a_warning_and_for_a_doubt_that_is_an_error():
    warning = replace(PAID_TWICE, severity=Severity.SHOULD)
    suite, found = cases(as_junit(report(warning, doubts=("it never fired",))))
    assert found[ID].find("failure") is None
    assert "Paid twice." in found[ID].find("system-out").text
    assert found["conclusive"].find("error").get("message") == "it never fired"
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=40))
def test_whatever_an_agent_says_stays_words(said):
    """Control characters, halves of surrogate pairs, and scripts."""
    hostile = replace(PAID_TWICE, message=f"{said}<script>alert(1)</script>")
    made = report(hostile, notes=(said,), doubts=(said,))
    page = as_html(made, {})
    assert "<script" not in page
    page.encode()
    cases(as_junit(made))
    ElementTree.fromstring(badge("chaoskit", re.sub("[^ -~]", "", said)))


def test_a_page_needs_no_other(told):
    story = told().ask(0).call("pay", order="o-1").killed().resume()
    story.call("pay", order="o-1").done()
    page = as_html(report(PAID_TWICE), {"0007": story.trial().history})
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<svg" in page
    assert "Paid twice." in page
    assert page == as_html(report(PAID_TWICE), {"0007": story.trial().history})


def test_a_finding_without_its_history_has_no_drawing():
    assert "<svg" not in as_html(report(PAID_TWICE), {})


def test_a_timeline_marks_what_the_finding_rests_on(told):
    story = told().ask(0).call("pay", order="o-1").killed().resume()
    (applied,) = (e.seq for e in story.events if e.kind == "applied")
    drawn = rows(story.trial().history, (applied,))
    assert [row.seq for row in drawn if row.marked] == [applied]
    assert [row.text for row in drawn if row.kind == "fault"] == [
        "kill@0:tools.pay[o-1]#1:after"
    ]
    assert "life 0 is killed" in [row.text for row in drawn]


def test_a_long_history_is_cut_to_what_matters_and_says_so(told):
    story = told()
    for _ in range(5 * ROWS_MAX):
        story.cross("redis", "get", "x")
    story.call("pay", order="o-1")
    (applied,) = (e.seq for e in story.events if e.kind == "applied")
    drawn = rows(story.done().trial().history, (applied,))
    assert len(drawn) <= ROWS_MAX
    assert any(row.marked for row in drawn)
    assert sum(row.gap for row in drawn) + len(drawn) > 4 * ROWS_MAX


@pytest.mark.parametrize("words", [("chaoskit", "L2 · redis"), ("a<b>", '"&"')])
def test_a_badge_is_an_image_that_says_its_words(words):
    image = ElementTree.fromstring(badge(*words))
    assert image.get("aria-label") == ": ".join(words)
