"""`human`: a gate is asked once, and its answer is used by itself alone."""

import pytest

from chaoskit.checks.case import Case
from chaoskit.checks.human import check

OWN = "human/own-answer"


@pytest.fixture
def judged(make_scenario, make_manifest):
    def judge(story):
        scenario = make_scenario({"ask": "Pay?"}, {"ask": "Sure?"})
        found = check(Case(story.trial(), scenario, make_manifest()))
        return [(each.requirement, each.subject) for each in found]

    return judge


@pytest.fixture
def answered(told):
    """The first gate has got its answer."""
    return told().ask(0).end("parked").start("answer", "answer 0")


def tell(story, turn, gate, text):
    return story.ask(turn, gate, results={gate: text})


def test_each_gate_is_told_its_own_answer(answered, judged):
    story = tell(answered, 1, "0.0", "answer 0").end("parked")
    story.start("answer", "answer 1")
    assert judged(tell(story, 2, "1.0", "they said: answer 1").done()) == []


def test_an_answer_to_another_gate_is_found(answered, judged):
    story = tell(answered, 1, "0.0", "answer 0").end("parked")
    story.start("answer", "answer 1")
    assert judged(tell(story, 2, "1.0", "answer 0").done()) == [(OWN, "turn 1")]


def test_an_answer_that_nobody_gave_is_found(told, judged):
    story = tell(told().ask(0), 1, "0.0", "answer 0")
    assert judged(story) == [(OWN, "turn 0")]


def test_an_answer_that_had_come_to_the_model_is_not_asked_for_again(answered, judged):
    story = tell(answered, 1, "0.0", "answer 0").killed().resume().ask(0).end("parked")
    story.start("answer", "answer 0")
    assert judged(story) == [("human/asked-once", "turn 0")]


def test_one_that_had_not_may_be_brought_again(answered, judged):
    story = answered.killed_at().resume().end("parked").start("answer", "answer 0")
    assert judged(tell(story, 1, "0.0", "answer 0")) == []
