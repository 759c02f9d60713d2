"""`answer`: the same final answer whatever happened on the way."""

import pytest

from chaoskit.checks.answer import check
from chaoskit.checks.case import Case, Golden
from chaoskit.model.history import RunEnded


@pytest.fixture
def judged(told, make_scenario, make_manifest):
    def judge(said, golden="Paid.", outcome="done", **llm):
        story = told().ask(0)
        story.add(RunEnded(life=0, outcome=outcome, answer=said))
        scenario = make_scenario(llm={"script": [{"say": "Paid."}], **llm})
        case = Case(story.trial(), scenario, make_manifest(), Golden(golden))
        return [(each.requirement, each.observed) for each in check(case)]

    return judge


@pytest.mark.parametrize("said", ["Paid twice.", None])
def test_another_answer_is_found(judged, said):
    assert judged(said) == [("answer/same", said)]


def test_the_same_answer_is_right(judged):
    assert judged("Paid.") == []


def test_a_run_s_own_id_makes_no_difference(judged):
    assert judged("Paid by run-0a1b2c3d.", "Paid by {run}.") == []


def test_where_the_fault_free_runs_differ_nothing_is_judged(judged):
    assert judged("Something", None) == []


def test_a_model_that_words_it_otherwise_is_not_judged(judged):
    assert judged("It is paid.", wobble="wording") == []


def test_a_run_that_is_not_done_has_no_answer(judged):
    assert judged(None, outcome="parked") == []
