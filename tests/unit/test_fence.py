"""`fence`: a life whose run another has ended changes nothing."""

import pytest

from chaoskit.checks.case import Case
from chaoskit.checks.fence import check
from chaoskit.model.faults import FaultKind

PAY = {"order": "o-1"}


@pytest.fixture
def judged(make_scenario, make_manifest):
    def judge(story):
        scenario = make_scenario([("pay", PAY)], tools={"pay": "keyed"})
        found = check(Case(story.trial(), scenario, make_manifest()))
        return [each.requirement for each in found]

    return judge


@pytest.fixture
def taken_over(told):
    """A life was stopped, another had the run end, and the first one goes on."""
    story = told().ask(0).cross("redis", "get", "x").struck(FaultKind.PAUSE)
    story.resume().call("pay", "k", **PAY).ask(1, "0.0").end("done")
    story.inspected("rest", 5, status="done", transcript=["all"])
    return story.continued(0)


def ended(story, number=5, status="done", transcript=("all",)):
    story.end("died", code=1)
    return story.inspected("death", number, status=status, transcript=[*transcript])


def test_one_that_changes_nothing_is_right(taken_over, judged):
    assert judged(ended(taken_over.cross("redis", "get", "x"))) == []


def test_an_effect_is_found(taken_over, judged):
    story = taken_over.cross("redis", "get", "x").deliver("pay", "k", **PAY)
    assert judged(ended(story)) == ["fence/no-effect"]


def test_what_it_was_about_to_send_lands_whatever_it_does(taken_over, judged):
    assert judged(ended(taken_over.deliver("pay", "k", **PAY))) == []


def test_a_checkpoint_is_found(taken_over, judged):
    assert judged(ended(taken_over, 6)) == ["fence/no-checkpoint"]


def test_so_is_another_one_of_the_same_number(taken_over, judged):
    assert judged(ended(taken_over, transcript=["less"])) == ["fence/no-checkpoint"]


def test_a_status_is_found(taken_over, judged):
    assert judged(ended(taken_over, 6, "running")) == ["fence/no-status"]


def test_where_nobody_took_over_the_run_is_its_own(told, judged):
    story = told().ask(0).cross("redis", "get", "x").struck(FaultKind.PAUSE)
    story.resume().end("died", code=1).inspected("rest", 1, status="running")
    story.continued(0).cross("redis", "get", "x").deliver("pay", "k", **PAY)
    assert judged(ended(story, 6)) == []
