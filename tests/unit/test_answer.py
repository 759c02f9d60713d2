"""`answer`: the same final answer whatever happened on the way."""

import pytest

from chaoskit.checks.answer import check, compared_in_part, unknown
from chaoskit.checks.case import Case, Golden
from chaoskit.model.address import Edge
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import RunEnded

PAY = {"order": "o-1"}


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


@pytest.fixture
def told_of_the_call(told, make_scenario, make_manifest):
    """A run that pays, and tells the model what came of it, if anything did."""

    def judge(story, *results):
        for text in results:
            story.ask(1, "0.0", results={"0.0": text})
        story.add(RunEnded(life=0, outcome="done", answer="It cost nothing."))
        scenario = make_scenario([("pay", PAY)], tools={"pay": "keyed"})
        golden = Golden("It cost 1.00.", 1, {"0.0": "paid 1.00"})
        case = Case(story.trial(), scenario, make_manifest(), golden)
        return [each.requirement for each in check(case)]

    return judge


def test_what_a_store_has_lost_excuses_no_other_answer(told, told_of_the_call):
    story = told().ask(0).call("pay", "k", **PAY).cross("redis", "set", "x")
    story.struck(FaultKind.ROLLBACK).killed().resume()
    assert told_of_the_call(story, "paid 1.00") == ["answer/same"]


def test_an_agent_may_sum_up_that_a_call_has_failed(told, told_of_the_call):
    story = told().ask(0).call("pay", "k", **PAY)
    story.struck(FaultKind.ERROR, Edge.BEFORE, "500")
    assert told_of_the_call(story, "error 500") == []


def test_where_the_call_was_made_all_the_same_it_may_not(told, told_of_the_call):
    story = told().ask(0).call("pay", "k", **PAY)
    story.struck(FaultKind.ERROR, Edge.BEFORE, "500").call("pay", "k", **PAY)
    assert told_of_the_call(story, "paid 1.00") == ["answer/same"]


def test_nor_where_the_model_was_never_told(told, told_of_the_call):
    story = told().ask(0).call("pay", "k", **PAY)
    story.struck(FaultKind.ERROR, Edge.BEFORE, "500")
    assert told_of_the_call(story) == ["answer/same"]


def test_nor_where_another_call_s_result_is_new_in_each_run(told, told_of_the_call):
    """With a time in it, and the run's id."""
    story = told().ask(0).call("pay", "k", **PAY)
    story.struck(FaultKind.REFUSE, Edge.BEFORE).call("pay", "k", **PAY)
    story.ask(1, "0.1", results={"0.1": "run-0a1b2c3d at 17:03"})
    assert told_of_the_call(story, "paid 1.00") == ["answer/same"]


@pytest.mark.parametrize(
    ("said", "golden", "why"),
    [("Paid.", "Paid.", None), (None, None, "printed none"), ("One", None, "differ")],
)
def test_an_answer_that_cannot_be_judged_is_named(
    told, make_scenario, make_manifest, said, golden, why
):
    story = told().ask(0)
    story.add(RunEnded(life=0, outcome="done", answer=said))
    scenario = make_scenario(llm={"script": [{"say": "Paid."}]})
    case = Case(story.trial(), scenario, make_manifest(), Golden(golden))
    assert (why or "None") in str(unknown(case))


@pytest.mark.parametrize(
    ("says", "is_told"), [("Paid.", False), ("Paid.\n", False), ("Paid:\n42.00", True)]
)
def test_of_an_answer_of_several_lines_it_is_told_that_one_is_compared(
    make_scenario, says, is_told
):
    """Else the others would count as compared."""
    script = [{"say": "Hello."}, {"say": says}]
    scenario = make_scenario(llm={"script": script})
    assert (compared_in_part(scenario) is not None) is is_told
