"""`cost`: a reply that was acted on is not asked for again, a lost one may be."""

import pytest

from chaoskit.checks.case import Case
from chaoskit.checks.cost import check, repaid
from chaoskit.model.faults import FaultKind

PAY = {"order": "o-1"}
AGAIN = ("cost/not-asked-again", "turn 0")


@pytest.fixture
def judged(make_scenario, make_manifest):
    def judge(story):
        scenario = make_scenario([("pay", PAY)], tools={"pay": "keyed"})
        found = check(Case(story.trial(), scenario, make_manifest()))
        return [(each.requirement, each.subject) for each in found]

    return judge


def test_a_reply_whose_call_was_sent_is_not_asked_for_again(told, judged):
    story = told().ask(0).deliver("pay", "k", **PAY).killed().resume()
    assert judged(story.ask(0).call("pay", "k", **PAY).ask(1, "0.0").done()) == [AGAIN]


def test_nor_one_after_which_the_next_turn_was_asked(told, judged):
    story = told().ask(0).ask(1, reply=False).killed().resume()
    assert judged(story.ask(0).ask(1).done()) == [AGAIN]


def test_a_reply_that_nothing_was_made_of_may_have_been_lost(told, judged):
    story = told().ask(0).killed().resume()
    assert judged(story.ask(0).call("pay", "k", **PAY).ask(1, "0.0").done()) == []


def test_a_request_that_was_refused_is_no_second_one(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).ask(0, problem="no such call")
    assert judged(story.ask(1, "0.0").done()) == []


def test_what_the_store_forgot_has_to_be_asked_again(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).cross("redis", "set", "x")
    story.struck(FaultKind.ROLLBACK).killed().resume().ask(0)
    assert judged(story.call("pay", "k", first=False, **PAY).ask(1, "0.0").done()) == []


def test_a_life_that_was_paused_learns_it_from_its_store(told, judged):
    """What it was about to ask is asked; once its store has spoken it must know."""
    story = told().cross("redis", "get", "x").struck(FaultKind.PAUSE)
    story.resume().ask(0).call("pay", "k", **PAY).ask(1, "0.0").end("done")
    story.continued(0).ask(0)
    assert judged(story) == []
    assert judged(story.cross("redis", "get", "x").ask(0)) == [AGAIN]


def test_what_was_paid_twice_is_counted(told):
    price = {"prompt_tokens": 10, "completion_tokens": 5}
    story = told().ask(0, **price).killed().resume().ask(0, **price).ask(1, **price)
    assert repaid(story.done().trial()) == 15
