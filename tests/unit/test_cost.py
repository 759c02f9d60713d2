"""`cost`: a reply that was acted on is not asked for again, a lost one may be."""

import pytest

from chaoskit.checks.case import Case
from chaoskit.checks.cost import check, deaths_paid_for, repaid
from chaoskit.model.address import Edge
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


LOST = [
    (FaultKind.DROP_REPLY, Edge.AFTER, None),
    (FaultKind.TEAR, Edge.of_part(2), None),
    (FaultKind.ERROR, Edge.of_part(2), "500"),
    (FaultKind.ERROR, Edge.AFTER, "length"),
]


@pytest.mark.parametrize("lost", LOST)
def test_a_reply_that_never_came_whole_is_asked_for_again(told, judged, lost):
    """Even where what came of it was enough to begin with."""
    story = told().ask(0).struck(*lost).deliver("pay", "k", **PAY)
    assert judged(story.ask(0).call("pay", "k", **PAY).ask(1, "0.0").done()) == []


def test_nor_does_it_excuse_those_that_came(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).ask(1, "0.0")
    story.struck(FaultKind.DROP_REPLY).crashed().resume()
    assert judged(story.ask(0).ask(1, "0.0").done()) == [AGAIN]


@pytest.fixture
def judged_in_a_loop(make_scenario, make_manifest):
    def judge(story, turns=2):
        scenario = make_scenario(*[[("pay", PAY)]] * turns, tools={"pay": "keyed"})
        found = check(Case(story.trial(), scenario, make_manifest()))
        return [(each.requirement, each.subject) for each in found]

    return judge


def test_a_call_that_is_made_again_later_is_the_first_until_then(
    told, judged_in_a_loop
):
    story = told().ask(0).deliver("pay", "k", **PAY).killed().resume().ask(0)
    story.call("pay", "k", **PAY).ask(1, "0.0").call("pay", "k2", **PAY)
    assert judged_in_a_loop(story.ask(2, "0.0", "1.0").done()) == [AGAIN]


def test_after_that_it_may_be_either(told, judged_in_a_loop):
    """The first one, sent again, does not show that the second reply came."""
    story = told().ask(0).call("pay", "k", **PAY).ask(1, "0.0").killed().resume()
    story.call("pay", "k", first=False, **PAY).ask(1, "0.0").call("pay", "k2", **PAY)
    assert judged_in_a_loop(story.ask(2, "0.0", "1.0").done()) == []


def test_so_it_may_where_the_store_has_forgotten_the_second(told, judged_in_a_loop):
    """A life that was there before goes on from what it knew."""
    story = told().ask(0).call("pay", "k", **PAY).ask(1, "0.0").cross(*WRITE)
    story.struck(FaultKind.ROLLBACK, Edge.AFTER, "9").killed().resume().ask(0)
    story.call("pay", "k2", **PAY).ask(0).call("pay", "k", first=False, **PAY)
    assert judged_in_a_loop(story.ask(1, "0.0").done()) == []


WRITE = ("redis", "set", "x")


def test_a_request_to_the_store_tells_nothing_before_its_answer(told, judged):
    """A heartbeat of another thread is on its way meanwhile."""
    for answered, found in ((False, []), (True, [AGAIN])):
        story = told().cross(*WRITE).struck(FaultKind.PAUSE).resume()
        story.ask(0).call("pay", "k", **PAY).ask(1, "0.0").end("done").continued(0)
        story.cross(*WRITE, after=answered)
        beat = story.last
        story.ask(0)
        story.last = beat
        assert judged(story if answered else story.reply()) == found


def test_one_that_wobbles_is_not_asked_for_again_either(
    told, make_scenario, make_manifest
):
    story = told().ask(0).deliver("pay", "k", **PAY).killed().resume().ask(0).done()
    llm = {"script": [{"call": [{"tool": "pay", "args": PAY}]}, {"say": "Paid."}]}
    scenario = make_scenario(tools={"pay": "keyed"}, llm={**llm, "wobble": "wording"})
    found = check(Case(story.trial(), scenario, make_manifest()))
    assert [each.requirement for each in found] == ["cost/not-asked-again"]


@pytest.fixture
def judged_at_a_gate(make_scenario, make_manifest):
    def judge(story):
        scenario = make_scenario({"ask": "Pay?"})
        found = check(Case(story.trial(), scenario, make_manifest()))
        return [(each.requirement, each.subject) for each in found]

    return judge


def test_a_gate_that_a_run_has_parked_for_is_not_asked_for_again(
    told, judged_at_a_gate
):
    story = told().ask(0).end("parked").start("answer", "answer 0")
    assert judged_at_a_gate(story.ask(0).ask(1, "0.0").done()) == [AGAIN]


def test_one_that_it_was_stopped_at_may_be(told, judged_at_a_gate):
    """Who is asked to end has no time to store what has just come."""
    story = told().ask(0).end("parked", "asked").resume()
    assert judged_at_a_gate(story.ask(0).end("parked")) == []


def test_a_life_beside_others_knows_of_them_by_its_store(told, judged):
    """A worker whose lease ran out while it was slow has had no word yet."""
    story = told().cross("redis", "get", "x").resume().cross("redis", "get", "x")
    story.ask(0).call("pay", "k", **PAY)
    story.life = 0
    assert judged(story.ask(0)) == []
    assert judged(story.cross("redis", "get", "x").ask(0)) == [AGAIN]


PRICE = {"prompt_tokens": 10, "completion_tokens": 5}


def test_what_was_paid_twice_is_counted(told):
    story = told().ask(0, **PRICE).killed().resume().ask(0, **PRICE).ask(1, **PRICE)
    trial = story.done().trial()
    assert (repaid(trial), deaths_paid_for(trial)) == (15, 1)


def test_a_restored_crash_has_its_price_and_those_before_it_have_not(told):
    story = told().ask(0, **PRICE).killed().resume().ask(0, **PRICE)
    story.killed(cause="restored").resume().ask(0, **PRICE).ask(1, **PRICE)
    trial = story.done().trial()
    assert (repaid(trial), deaths_paid_for(trial)) == (15, 1)


def test_what_is_asked_once_more_after_done_is_no_price_of_a_kill(told):
    story = told().ask(0, **PRICE).end("done").start("again").ask(0, **PRICE)
    trial = story.end("done").over("done").trial()
    assert (repaid(trial), deaths_paid_for(trial)) == (0, 0)
