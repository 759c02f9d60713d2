"""`human`: a gate is asked once, and its answer is used by itself alone."""

import pytest

from chaoskit.checks.case import Case, Golden
from chaoskit.checks.human import check
from chaoskit.model.faults import FaultKind

OWN = "human/own-answer"
TWICE = "human/asked-once"


@pytest.fixture
def judged(make_scenario, make_manifest):
    def judge(story, golden=None, manifest=None, **more):
        scenario = make_scenario({"ask": "Pay?"}, {"ask": "Sure?"}, **more)
        golden = Golden(results=golden or {})
        manifest = manifest or make_manifest()
        found = check(Case(story.trial(), scenario, manifest, golden))
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


def test_a_gate_that_is_parked_for_once_more_is_asked_again(answered, judged):
    """Whether or not somebody comes to answer it."""
    story = tell(answered, 1, "0.0", "answer 0").killed().resume().ask(0)
    assert judged(story.parks()) == [(TWICE, "turn 0")]


def test_also_where_another_life_parks(answered, judged):
    story = tell(answered, 1, "0.0", "answer 0").killed().resume().ask(0).killed_at()
    assert judged(story.resume().parks()) == [(TWICE, "turn 0")]


def test_who_only_asks_the_model_again_asks_no_person(answered, judged):
    """It costs tokens, and that is another promise."""
    story = tell(answered, 1, "0.0", "answer 0").killed().resume().ask(0)
    assert judged(tell(story, 1, "0.0", "answer 0").parks()) == []


def test_a_request_that_was_held_has_told_the_model_nothing(answered, judged):
    story = answered.ask(1, "0.0", results={"0.0": "answer 0"}, reply=False).killed()
    assert judged(story.resume().ask(0).parks()) == []


def test_a_life_that_was_paused_may_ask_again(told, judged):
    story = told().cross("redis", "get", "x").struck(FaultKind.PAUSE)
    story.resume().ask(0).end("parked").start("answer", "answer 0")
    tell(story, 1, "0.0", "answer 0").end("parked").continued(0)
    assert judged(story.ask(0).end("parked")) == []


def test_what_the_store_forgot_is_asked_again(answered, judged):
    story = tell(answered, 1, "0.0", "answer 0").cross("redis", "set", "x")
    story.struck(FaultKind.ROLLBACK).killed().resume()
    assert judged(story.ask(0).end("parked")) == []


@pytest.mark.parametrize(
    "wrapped",
    [
        '{"answer": "answer 0"}',
        "The person said: answer 0.",
        "answer 1? no: answer 0",
    ],
)
def test_whoever_wraps_an_answer_still_says_it(answered, judged, wrapped):
    assert judged(tell(answered, 1, "0.0", wrapped)) == []


def test_so_does_whoever_escapes_it(told, judged):
    """As JSON in ASCII does."""
    story = told().ask(0).end("parked").start("answer", "caf\u00e9")
    tell(story, 1, "0.0", '"caf\\u00e9"')
    assert judged(story, human=["caf\u00e9", "no"]) == []


def test_an_agent_s_own_words_are_those_of_every_run(answered, judged):
    """`approved` for `yes`; without a fault-free run nobody can say."""
    story = tell(answered, 1, "0.0", "approved")
    assert judged(story) == []
    assert judged(story, golden={"0.0": "approved"}) == []
    assert judged(story, golden={"0.0": "answer 0"}) == [(OWN, "turn 0")]


def test_another_gate_s_answer_is_wrong_in_every_run(answered, judged):
    story = tell(answered, 1, "0.0", "answer 1")
    assert judged(story, golden={"0.0": "answer 1"}) == [(OWN, "turn 0")]


def test_another_answer_inside_a_word_is_not_said(told, judged):
    """`no` in `note`: an agent's own words, the same in every run."""
    yes, no = '{"approved": true, "note": ""}', '{"approved": false, "note": ""}'
    story = tell(told().ask(0).end("parked").start("answer", "yes"), 1, "0.0", yes)
    story = tell(story.end("parked").start("answer", "no"), 2, "1.0", no)
    golden = {"0.0": yes, "1.0": no}
    assert judged(story, golden, human=["yes", "no"]) == []
    story = tell(told().ask(0).end("parked").start("answer", "yes"), 1, "0.0", "no!")
    assert judged(story, {"0.0": "no!"}, human=["yes", "no"]) == [(OWN, "turn 0")]


def test_one_answer_does_not_serve_two_gates_with_equal_ones(told, judged):
    """But whose of two was used nobody can say."""
    story = told().ask(0).end("parked").start("answer", "yes")
    tell(story, 1, "0.0", "yes")
    once = tell(story, 2, "1.0", "yes")
    assert judged(once, human=["yes", "yes"]) == [(OWN, "turn 1")]
    story = told().ask(0).end("parked").start("answer", "yes")
    story = tell(story, 1, "0.0", "yes").end("parked").start("answer", "yes")
    assert judged(tell(story, 2, "1.0", "yes"), human=["yes", "yes"]) == []


def test_a_gate_with_an_equal_answer_is_asked_once_too(told, judged):
    story = told().ask(0).end("parked").start("answer", "yes")
    tell(story, 1, "0.0", "yes").killed().resume().ask(0).end("parked")
    story.start("answer", "yes").ask(1, "0.0").end("parked").start("answer", "yes")
    story = tell(story, 2, "1.0", "yes")
    assert judged(story, human=["yes", "yes"]) == [(TWICE, "turn 0")]


def test_an_equal_answer_that_is_brought_may_be_the_other_gate_s(told, judged):
    """A life goes back, dies, and the next is started with the second answer again."""
    story = told().ask(0).end("parked").start("answer", "yes")
    tell(story, 1, "0.0", "yes").end("parked").start("answer", "yes").ask(0).killed()
    story = tell(story.start("answer", "yes"), 2, "1.0", "yes")
    assert judged(story, human=["yes", "yes"]) == []


@pytest.mark.parametrize("resumes", ["earlier-checkpoint", "start"])
def test_a_crash_may_take_an_answer_back_where_that_is_declared(
    answered, judged, make_manifest, resumes
):
    story = tell(answered, 1, "0.0", "answer 0").killed().resume().ask(0).end("parked")
    assert judged(story, manifest=make_manifest(resumes=resumes)) == []
    assert judged(story) == [(TWICE, "turn 0")]


def test_but_not_one_that_the_run_had_parked_after(answered, judged, make_manifest):
    """Unless it is declared to begin from the start."""
    story = tell(answered, 1, "0.0", "answer 0").end("parked")
    story.start("answer", "answer 1").killed_at().resume().ask(0).end("parked")
    earlier, start = (
        make_manifest(resumes=resumes) for resumes in ("earlier-checkpoint", "start")
    )
    assert judged(story, manifest=earlier) == [(TWICE, "turn 0")]
    assert judged(story, manifest=start) == []
