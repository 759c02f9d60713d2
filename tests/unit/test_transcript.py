"""`transcript` on hand-written histories: refusals, mix-ups, what is stored."""

import json

import pytest

from chaoskit.checks.case import Case, Golden
from chaoskit.checks.transcript import check
from chaoskit.model.address import Edge
from chaoskit.model.faults import FaultKind
from chaoskit.model.scenario import Tool

KEPT = "transcript/calls-kept"
NO_RESULT = (
    "An assistant message with 'tool_calls' must be followed by tool messages "
    "responding to each 'tool_call_id'. The following tool_call_ids did not have "
    "response messages: {}"
)


@pytest.fixture(scope="module")
def judged(make_scenario, make_manifest):
    def judge(story, **results):
        scenario = make_scenario([("pay", {})], tools={"pay": "keyed"})
        golden = Golden(
            results={f"0.{call[1:]}": text for call, text in results.items()}
        )
        return list(check(Case(story.trial(), scenario, make_manifest(), golden)))

    return judge


def test_requests_that_were_accepted(told, judged):
    assert not judged(told().ask(0).killed().resume().ask(0).done())


def test_a_request_that_was_refused(told, judged):
    story = told().ask(0, problem="no result")
    (found,) = judged(story.fails())
    assert found.requirement == "transcript/valid-request"
    assert found.observed == "no result"
    assert found.events == (1,)
    assert "life 0" in found.message


def test_a_refusal_is_found_though_its_answer_was_lost(told, judged):
    story = told().ask(0, problem="no result", reply=False).killed().resume().done()
    assert [f.requirement for f in judged(story)] == ["transcript/valid-request"]


def test_a_refusal_that_is_repeated_is_one_finding(told, judged):
    story = told().ask(0, problem="no result").ask(0, problem="no result")
    story.killed().resume().ask(0, problem="no result")
    assert len(judged(story.fails())) == 1


def test_different_refusals_are_different_findings(told, judged):
    story = told().ask(0, problem="no result").ask(0, problem="unknown role")
    assert len({found.cause for found in judged(story.fails())}) == 2


@pytest.mark.parametrize(
    "later", ["call_t4p0", "call_t4p0, call_t4p1", "toolu_t4p0, toolu_t4p1"]
)
def test_the_same_refusal_further_on_is_the_same_cause(told, judged, later):
    """Killed at turn 1 or at turn 4: one bug, so one finding of the campaign."""
    (one,) = judged(told().ask(1, problem=NO_RESULT.format("call_t1p0")).fails())
    (other,) = judged(told().ask(4, problem=NO_RESULT.format(later)).fails())
    assert one.cause == other.cause
    assert one.observed != other.observed


def test_a_result_that_is_another_call_s_is_found(told, judged):
    story = told().ask(1, "0.0", "0.1", results={"0.0": "two", "0.1": "one"}).done()
    (found,) = judged(story, _0="one", _1="two")
    assert (found.requirement, found.subject) == ("transcript/right-result", "0.0")
    assert (found.expected, found.observed) == ("one", "two")


def test_its_own_result_is_right(told, judged):
    story = told().ask(1, "0.0", results={"0.0": "one"}).done()
    assert judged(story, _0="one", _1="two") == []


def test_calls_with_equal_results_tell_nothing(told, judged):
    story = told().ask(1, "0.0", results={"0.0": "ok"}).done()
    assert judged(story, _0="ok", _1="ok") == []


@pytest.mark.parametrize(("when", "found"), [("death", 0), ("end", 1)])
def test_at_the_end_of_a_run_that_is_done_no_call_is_open(told, judged, when, found):
    """Before that, words of the same reply may come after it."""
    call = {"type": "function_call", "call_id": "a"}
    words = {"type": "message", "role": "assistant", "content": "Done."}
    story = told().inspected(when, transcript=[call, words]).done()
    assert len(judged(story)) == found


PAY = ("pay", {"order": "o-1"})


@pytest.fixture(scope="module")
def mixed_up(make_scenario, make_manifest):
    """The calls that were told another one's result."""

    def judge(story, usual, *turns):
        scenario = make_scenario(*turns, tools={"pay": "blind"})
        found = check(
            Case(story.trial(), scenario, make_manifest(), Golden("", 9, usual))
        )
        return [each.subject for each in found]

    return judge


def test_equal_calls_have_receipts_in_the_order_in_which_they_were_made(told, mixed_up):
    """Side by side in another order; or the first was refused, and the second not."""
    usual = {"0.0": "pay#1", "0.1": "pay#2"}
    swapped = {"0.0": "pay#2", "0.1": "pay#1"}
    story = told().ask(0).ask(1, *swapped, results=swapped)
    assert mixed_up(story.done(), usual, [PAY, PAY]) == []
    usual = {"0.0": "pay#1", "1.0": "pay#2"}
    story = told().ask(0).ask(1, "0.0", results={"0.0": "error 500"})
    story.ask(2, "0.0", "1.0", results={"1.0": "pay#1"})
    assert mixed_up(story.done(), usual, [PAY], [PAY]) == []


def test_what_one_was_told_of_is_not_the_result_of_the_next(told, mixed_up):
    """As of an agent that takes the first of all equal calls for the newest."""
    usual = {"0.0": "pay#1", "1.0": "pay#2"}
    story = told().ask(0).ask(1, "0.0", results={"0.0": "pay#1"})
    story.ask(2, "0.0", "1.0", results={"1.0": "pay#1"})
    assert mixed_up(story.done(), usual, [PAY], [PAY]) == ["1.0"]


def test_a_wait_takes_as_long_as_it_takes(told, mixed_up):
    usual = {"0.0": "waited 1 s", "1.0": "waited 2 s", "2.0": "pay#1"}
    turns = {"wait": 1.0}, {"wait": 2.0}, [PAY]
    story = told().ask(0).ask(1, "0.0", results={"0.0": "waited 2 s"})
    assert mixed_up(story.done(), usual, *turns) == []
    story = told().ask(0).ask(1, "0.0", results={"0.0": "pay#1"})
    assert mixed_up(story.done(), usual, *turns) == ["0.0"]


def test_which_gate_has_which_answer_is_another_promise(told, mixed_up):
    usual = {"0.0": "yes", "1.0": "no"}
    story = told().ask(0).ask(1, "0.0", results={"0.0": "no"})
    assert mixed_up(story.done(), usual, {"ask": "Pay?"}, {"ask": "Sure?"}) == []


def test_a_run_s_own_id_in_a_result_makes_no_difference(told, judged):
    story = told().ask(1, "0.1", results={"0.1": "for run-0a1b2c3d"}).done()
    assert judged(story, _0="for {run}", _1="else") != []


def test_a_stored_call_with_two_results_is_found(told, judged):
    call = {"role": "assistant", "tool_calls": [{"id": "a"}]}
    result = {"role": "tool", "tool_call_id": "a"}
    right, wrong = [call, result], [call, result, result]
    assert judged(told().inspected(transcript=right).done()) == []
    (found,) = judged(told().inspected(transcript=wrong).done())
    assert found.requirement == "transcript/stored-pairs"


RECEIPT = '{"receipt": "pay#1"}'


@pytest.mark.parametrize("told_", ["", "ok", "Error: the tool was interrupted"])
def test_a_result_that_a_resumed_life_has_forgotten(told, judged, told_):
    """Whatever it says in its place, the model goes on without it."""
    story = told().ask(0).call("pay", "k").killed().resume()
    story.ask(1, "0.0", results={"0.0": told_}).done()
    (found,) = judged(story, t0=RECEIPT)
    assert found.requirement == "transcript/right-result"
    assert found.expected == RECEIPT
    assert found.observed == told_
    assert found.subject == "0.0"


@pytest.mark.parametrize(
    "text", ['{"attempt": 2, "receipt": "pay#1"}', "pay#1 (found, not sent again)"]
)
def test_a_result_in_other_words_is_still_that_result(told, judged, text):
    story = told().ask(0).call("pay", "k").killed().resume()
    assert not judged(story.ask(1, "0.0", results={"0.0": text}).done(), t0=RECEIPT)


def test_what_a_tool_failed_to_say_may_be_told(told, judged):
    """The service answered with an error, and the model hears of that."""
    story = (
        told().ask(0).deliver("pay", "k").struck(FaultKind.ERROR, Edge.BEFORE, "503")
    )
    story.ask(1, "0.0", results={"0.0": "HTTP 503"}).done()
    assert not judged(story, t0=RECEIPT)


def test_what_may_be_left_open_may_be_told_as_open(told, make_scenario, make_manifest):
    """A blind call that a life died in, and any under at-most-once."""
    story = told().ask(0).deliver("pay", "k").killed().resume()
    trial = (
        story.ask(1, "0.0", results={"0.0": "its outcome is unknown"}).done().trial()
    )
    golden = Golden(results={"0.0": RECEIPT})
    for tool_class, effects in (("blind", "exactly-once"), ("keyed", "at-most-once")):
        scenario = make_scenario([("pay", {})], tools={"pay": tool_class})
        manifest = make_manifest(effects)
        assert not list(check(Case(trial, scenario, manifest, golden)))


SEAT = {"row": 12, "seat": "12A", "price": 120.0, "held": True, "for": ["Jürgen"]}
SHOWN = json.dumps(SEAT, ensure_ascii=False)


@pytest.fixture(scope="module")
def told_of_a_seat(told, make_scenario, make_manifest):
    """What is found of a resumed life that tells a result so."""

    def judge(text):
        find = Tool.model_validate({"class": "read", "result": SEAT})
        scenario = make_scenario([("find", {})], tools={"find": "read"})
        scenario = scenario.model_copy(update={"tools": {"find": find}})
        story = told().ask(0).call("find").killed().resume()
        trial = story.ask(1, "0.0", results={"0.0": text}).done().trial()
        golden = Golden(results={"0.0": f"attempt 1: {SHOWN}"})
        found = check(Case(trial, scenario, make_manifest(), golden))
        return [each.requirement for each in found]

    return judge


@pytest.mark.parametrize(
    "text",
    [
        f"attempt 1: {SHOWN}"[:-9],
        SHOWN.replace("12A", "99Z"),
        SHOWN.replace("120.0", "20"),
        '{"row": 12, "seat": "12A", "price": 120.0, "held": true}',
    ],
)
def test_a_result_of_which_a_resumed_life_has_lost_a_part(told_of_a_seat, text):
    assert told_of_a_seat(text) == ["transcript/right-result"]


@pytest.mark.parametrize(
    "text",
    [
        f"attempt 2: {SHOWN}",
        json.dumps(SEAT),
        json.dumps({**SEAT, "price": 120}, indent=1),
        "row 12, seat 12A for Jürgen at 120.00; held",
    ],
)
def test_a_result_that_is_told_in_another_form_is_whole(told_of_a_seat, text):
    assert told_of_a_seat(text) == []


def test_a_request_without_the_task_is_found(told, make_scenario, make_manifest):
    """Only where the fault-free runs tell it each time, and it was not refused."""
    plain = make_scenario([("pay", {})], tools={"pay": "keyed"}), make_manifest()

    def judged(*, tells_task, **more):
        story = told().ask(0).killed().resume().ask(0, task=False, **more).done()
        found = check(Case(story.trial(), *plain, Golden(tells_task=tells_task)))
        return [each.requirement for each in found]

    assert judged(tells_task=True) == ["transcript/task-kept"]
    assert judged(tells_task=False) == []
    refused = judged(tells_task=True, problem="no")
    assert refused == ["transcript/valid-request"]


def test_a_call_that_a_resumed_life_tells_otherwise_is_found(
    told, make_scenario, make_manifest
):
    """Only where the fault-free runs tell all as they were made."""
    scenario = make_scenario([("pay", {"cents": 1})], tools={"pay": "keyed"})

    def judged(golden, **more):
        told_so = {"rewritten": {"0.0": "pay(cents=2)"}, **more}
        story = told().ask(0).killed().resume().ask(1, "0.0", **told_so).done()
        found = check(Case(story.trial(), scenario, make_manifest(), golden))
        return [(e.requirement, e.expected, e.observed) for e in found]

    kept = ("transcript/calls-kept", "pay(cents=1)", "pay(cents=2)")
    assert judged(Golden(tells_calls=True)) == [kept]
    assert judged(Golden()) == []
    assert judged(Golden(tells_calls=True), rewritten={}) == []


@pytest.mark.parametrize(
    ("kind", "found"), [(FaultKind.ERROR, []), (FaultKind.DELAY, [KEPT])]
)
def test_a_reply_that_a_fault_has_cut_made_no_call_to_be_kept(
    told, make_scenario, make_manifest, kind, found
):
    scenario = make_scenario([("pay", {"cents": 1})], tools={"pay": "keyed"})
    story = told().ask(0).struck(kind, Edge.AFTER)
    story = story.ask(1, "0.0", rewritten={"0.0": 'pay({"ce)'}).done()
    case = Case(story.trial(), scenario, make_manifest(), Golden(tells_calls=True))
    assert [each.requirement for each in check(case)] == found
