"""Which gate or wait is open is read off a history, message by message."""

import pytest

from chaoskit.model.history import Asked, Crossed, FaultFired, LifeEnded
from chaoskit.model.scenario import AskTurn, Call, CallTurn, SayTurn, WaitTurn
from chaoskit.model.waiting import open_turn, open_turns

SCRIPT = (
    CallTurn(call=(Call(tool="pay", args={}),)),
    AskTurn(ask="Approve?"),
    WaitTurn(wait=3),
    SayTurn(say="Done."),
)


def _request(life, nth, turn, *carried, problem=None, edges=("before", "after")):
    asked = Asked(life=life, turn=turn, carried=carried, problem=problem)
    address = f"{life}:llm.chat#{nth}"
    return [asked, *(Crossed(life=life, address=f"{address}:{e}") for e in edges)]


def _killed(life, cause="fault"):
    fired = [FaultFired(life=life, fault="kill@0:llm.chat#1:before")]
    return [*fired, LifeEnded(life=life, cause=cause, ending="died", signal=9)]


PARKED = LifeEnded(life=0, cause="itself", ending="parked", code=75)
TO_THE_GATE = [*_request(0, 1, 0), *_request(0, 2, 1, "0.0")]


def test_nothing_is_open_before_a_gate_is_asked_for():
    assert open_turn([], SCRIPT) is None
    assert open_turn(_request(0, 1, 0), SCRIPT) is None


def test_a_gate_is_open_until_its_answer_reaches_the_model():
    assert open_turn([*TO_THE_GATE, PARKED], SCRIPT) == 1
    carried = _request(1, 1, 2, "0.0", "1.0")
    assert open_turn([*TO_THE_GATE, PARKED, *carried], SCRIPT) == 2
    said = _request(2, 1, 3, "0.0", "1.0", "2.0")
    assert open_turn([*TO_THE_GATE, PARKED, *carried, *said], SCRIPT) is None


@pytest.mark.parametrize("cause", ["fault", "restored", "cut"])
def test_a_reply_that_was_lost_opens_nothing(cause):
    assert open_turn([*TO_THE_GATE, *_killed(0, cause)], SCRIPT) is None


def test_an_answer_that_was_killed_on_its_way_leaves_the_gate_open():
    lost = _request(1, 1, 2, "0.0", "1.0", edges=("before",))
    history = [*TO_THE_GATE, PARKED, *lost, *_killed(1)]
    assert open_turn(history, SCRIPT) == 1


def test_an_answer_that_arrived_closes_the_gate_though_the_reply_is_lost():
    history = [*TO_THE_GATE, PARKED, *_request(1, 1, 2, "0.0", "1.0"), *_killed(1)]
    assert open_turn(history, SCRIPT) is None


def test_a_death_at_another_message_changes_nothing():
    store = [Crossed(life=0, address="0:redis.SET[k]#1:before")]
    assert open_turn([*TO_THE_GATE, *store, *_killed(0)], SCRIPT) == 1


def test_a_refused_request_neither_opens_nor_closes():
    refused = _request(0, 3, 2, "0.0", "1.0", problem="no")
    assert open_turn([*TO_THE_GATE, *refused], SCRIPT) == 1
    assert open_turn(_request(0, 1, 1, problem="no"), SCRIPT) is None


def test_requests_are_counted_within_their_life():
    again = [*TO_THE_GATE, *_killed(0), *_request(1, 1, 1, "0.0")]
    assert open_turn(again, SCRIPT) == 1


def test_turns_past_the_end_are_no_gates():
    assert open_turn(_request(0, 1, 9), SCRIPT) is None


def test_questions_of_two_apis_are_told_apart():
    """Messages are numbered per operation; each question goes with its own number."""
    asked = Asked(life=0, op="responses", turn=1, carried=("0.0",))
    address = "0:llm.responses#1"
    edges = [Crossed(life=0, address=f"{address}:{e}") for e in ("before", "after")]
    assert open_turn([*_request(0, 1, 0), asked, *edges], SCRIPT) == 1


def test_what_is_open_is_told_event_by_event():
    told = _request(1, 1, 2, "0.0", "1.0", edges=("before",))
    history = [*TO_THE_GATE, PARKED, *told, *_killed(1), *_killed(1, "cut")]
    seen = [turn for _, turn in open_turns(history, SCRIPT)]
    assert seen == [open_turn(history[:n], SCRIPT) for n in range(len(history))]
    assert set(seen) == {None, 1}
