"""`store`: what is read back is the newest durable checkpoint, whole."""

import pytest

from chaoskit.checks.case import Case
from chaoskit.checks.store import check
from chaoskit.model.faults import FaultKind

GOAL = {"role": "user", "content": "Do it"}
REPLY = {"role": "assistant", "content": "Done."}


@pytest.fixture
def judged(make_scenario, make_manifest):
    def judge(story):
        scenario = make_scenario([("pay", {})], tools={"pay": "keyed"})
        found = check(Case(story.trial(), scenario, make_manifest()))
        return [each.requirement for each in found]

    return judge


def test_a_run_that_goes_on_is_right(told, judged):
    story = told().log("checkpoint", 1).inspected(checkpoint_id=1, transcript=[GOAL])
    story.resume().log("checkpoint", 2)
    story.inspected(checkpoint_id=2, transcript=[GOAL, REPLY])
    assert judged(story.inspected("end", 2, transcript=[GOAL, REPLY])) == []


def test_before_there_is_a_checkpoint_nothing_can_be_read(told, judged):
    assert judged(told().inspected(problem="no such run").resume()) == []


def test_what_was_there_can_be_read(told, judged):
    story = told().log("checkpoint", 1).inspected(problem="no JSON")
    assert judged(story) == ["store/readable"]


def test_an_older_checkpoint_than_was_durable_is_found(told, judged):
    story = told().log("checkpoint", 10).inspected(checkpoint_id=9)
    assert judged(story) == ["store/newest"]


def test_a_newer_one_may_have_been_saved_before_it_was_logged(told, judged):
    assert judged(told().log("checkpoint", 1).inspected(checkpoint_id=2)) == []


def test_one_id_for_two_checkpoints_is_found(told, judged):
    story = told().inspected(checkpoint_id=1, transcript=[GOAL]).resume()
    story.inspected(checkpoint_id=1, transcript=[GOAL, REPLY])
    assert judged(story) == ["store/ids-rise"]


def test_a_transcript_that_lost_its_end_is_found(told, judged):
    story = told().inspected(checkpoint_id=1, transcript=[GOAL, REPLY]).resume()
    story.inspected(checkpoint_id=2, transcript=[GOAL])
    assert judged(story) == ["store/whole"]


def test_one_that_was_summed_up_is_not_judged(told, judged):
    story = told().inspected(checkpoint_id=1, transcript=[GOAL, REPLY]).resume()
    story.inspected(checkpoint_id=2, transcript=[{"role": "user", "content": "So far"}])
    assert judged(story) == []


def test_what_the_store_forgot_is_its_own_doing(told, judged):
    story = told().log("checkpoint", 3).cross("redis", "set", "x")
    story.struck(FaultKind.ROLLBACK).inspected(checkpoint_id=2)
    assert judged(story) == []
