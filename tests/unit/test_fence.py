"""`fence`: a life whose run another has ended changes nothing."""

import pytest

from chaoskit.checks.case import Case
from chaoskit.checks.fence import check
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import LifeStarted, StatusSeen

PAY = {"order": "o-1"}
ALL = [{"role": "user", "content": "Do it"}]


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
    story.inspected("rest", 5, status="done", transcript=ALL)
    return story.continued(0)


def ended(story, number=5, status="done", transcript=ALL):
    story.end("died", code=1)
    return story.inspected("death", number, status=status, transcript=transcript)


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
    assert judged(ended(taken_over, transcript=[{"role": "user"}])) == [
        "fence/no-checkpoint"
    ]


def test_a_status_is_found(taken_over, judged):
    assert judged(ended(taken_over, 6, "running")) == ["fence/no-status"]


def test_where_nobody_took_over_the_run_is_its_own(told, judged):
    story = told().ask(0).cross("redis", "get", "x").struck(FaultKind.PAUSE)
    story.resume().end("died", code=1).inspected("rest", 1, status="running")
    story.continued(0).cross("redis", "get", "x").deliver("pay", "k", **PAY)
    assert judged(ended(story, 6)) == []


def test_one_whose_store_has_forgotten_cannot_know(taken_over, judged):
    story = taken_over.cross("redis", "set", "x").struck(FaultKind.ROLLBACK)
    assert judged(ended(story, 6)) == []


def test_ids_and_times_may_be_new_at_each_reading(told, judged):
    story = told().ask(0).cross("redis", "get", "x").struck(FaultKind.PAUSE)
    story.resume().end("done")
    first, second = ({"role": "user", "content": "Do it", "id": n} for n in "12")
    story.inspected("rest", 5, status="done", transcript=[first]).continued(0)
    assert judged(ended(story, transcript=[second])) == []


def test_a_look_that_failed_says_nothing(taken_over, judged):
    taken_over.end("died", code=1).inspected("death", problem="it said nothing")
    assert judged(ended(taken_over)) == []


def test_processes_side_by_side_are_judged_by_the_status(told, judged):
    """Of a fleet no life ends the run: its status says that another has."""
    story = told()
    story.add(LifeStarted(life=1, purpose="start", process="worker.2"))
    story.cross("redis", "get", "x").struck(FaultKind.PAUSE)
    story.add(StatusSeen(life=-1, status="done")).inspected("rest", 5, status="done")
    story.continued(0).cross("redis", "get", "x").deliver("pay", "k", **PAY)
    story.end("done", "stopped").inspected("end", 5, status="running")
    assert judged(story) == ["fence/no-effect", "fence/no-status"]
