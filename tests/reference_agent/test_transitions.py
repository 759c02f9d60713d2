"""How a run moves: keys, parallel calls, bad replies, retry counts."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_agent import transitions
from reference_agent.state import Phase, State, Status
from reference_agent.transitions import ATTEMPTS_MAX, Outcome, Reply, key_for

TOOLS = {"hold_seat", "charge_card"}
APPLIED = Outcome("ok", applied=True)
places = st.tuples(st.text(), st.integers(0), st.integers(0), st.text())


PROBLEM = "the arguments are not a JSON object, or nested too deep"


def wanted(*calls: tuple[str, str], tag: str = "a") -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"{tag}{i}",
                "type": "function",
                "function": {"name": n, "arguments": a},
            }
            for i, (n, a) in enumerate(calls)
        ],
    }


def after_reply(state: State, message: dict[str, Any]) -> State:
    reply = Reply("chatcmpl-1", message, 7, 3)
    return transitions.parsed(transitions.answered(state, reply), TOOLS)


def asked() -> State:
    return transitions.asking(transitions.begin("r1", "goal"))


def pending_key(state: State) -> str:
    assert state.pending is not None
    return state.pending.key


@given(places, places)
def test_keys_differ_where_calls_differ_and_fit_a_header(one: Any, two: Any) -> None:
    assert (key_for(*one) == key_for(*two)) == (one == two)
    assert key_for(*one).isascii()
    assert key_for(*one).isprintable()


def test_a_reply_that_is_asked_for_again_has_the_same_keys() -> None:
    """Its ids are new; what was lost with it must not show."""
    call = ("hold_seat", "{}")
    first, again = (after_reply(asked(), wanted(call, tag=tag)) for tag in "ab")
    assert pending_key(first) == pending_key(again)
    assert first.pending != again.pending


def test_equal_calls_of_a_turn_and_of_the_next_have_keys_of_their_own() -> None:
    call = ("charge_card", '{"order": "o-1"}')
    state = after_reply(asked(), wanted(call, call))
    keys = []
    for _ in range(2):
        keys.append(pending_key(state))
        assert state.pending is not None
        state = transitions.recorded(state, state.pending, APPLIED)
    keys.append(pending_key(after_reply(state, wanted(call))))
    assert len(set(keys)) == 3


def test_calls_of_a_turn_are_recorded_one_by_one_in_order() -> None:
    state = after_reply(asked(), wanted(("hold_seat", "{}"), ("charge_card", "{}")))
    assert (state.phase, len(state.queue)) == (Phase.TOOL, 1)
    assert state.pending is not None
    state = transitions.recorded(state, state.pending, Outcome("held", applied=True))
    assert state.phase is Phase.TOOL
    assert [done.tool for done in state.completed] == ["hold_seat"]
    assert state.pending is not None
    state = transitions.recorded(state, state.pending, Outcome("paid", applied=True))
    assert (state.phase, state.step, state.pending) == (Phase.CALL_LLM, 2, None)
    results = [(m["tool_call_id"], m["content"]) for m in state.messages[-2:]]
    assert results == [("a0", "held"), ("a1", "paid")]


@pytest.mark.parametrize(
    "arguments",
    [
        "{",
        "[1]",
        '{"a": NaN}',
        "[" * 100_000,
        '{"a":' * 150 + "1" + "}" * 150,
        "",
        '{"a": 1e400}',
        r'{"a": "\ud800"}',
    ],
)
def test_arguments_that_are_no_object_are_the_models_to_put_right(
    arguments: str,
) -> None:
    state = after_reply(asked(), wanted(("hold_seat", arguments)))
    assert state.pending is not None
    assert state.pending.problem == PROBLEM


def test_the_name_of_an_unknown_tool_goes_no_further() -> None:
    """Log lines hold tool names and keys, and a model can put anything into a name."""
    state = after_reply(asked(), wanted(("made_up", "{}")))
    assert state.pending is not None
    assert state.pending.problem == "there is no such tool"
    assert state.pending.key == "r1/1/0/unknown"


def test_a_reply_without_calls_is_the_answer() -> None:
    state = after_reply(asked(), {"role": "assistant", "content": "Booked."})
    assert (state.status, state.answer) == (Status.DONE, "Booked.")


def test_the_model_call_is_recorded_with_hash_id_and_tokens() -> None:
    state = asked()
    (call,) = transitions.answered(state, Reply("c-9", wanted(), 7, 3)).model_calls
    assert (call.step, call.response_id) == (1, "c-9")
    assert (call.prompt_tokens, call.completion_tokens) == (7, 3)
    assert call.prompt_hash == state.prompt_hash != ""


def test_a_prompt_is_known_again_by_its_hash() -> None:
    """The same question in any run, and no other one."""
    elsewhere = transitions.asking(transitions.begin("r2", "goal"))
    other = transitions.asking(transitions.begin("r1", "another goal"))
    assert asked().prompt_hash == elsewhere.prompt_hash != other.prompt_hash
    later = transitions.asking(
        transitions.answered(asked(), Reply("c", wanted(), 0, 0))
    )
    assert later.prompt_hash != asked().prompt_hash


def test_a_failed_attempt_moves_nothing_but_its_count() -> None:
    """No transition is made twice, or half: the same question, the same step."""
    failed = transitions.attempt_failed(asked(), "no answer", sent=False, now=5.0)
    assert (failed.attempts, failed.retry_at) == (1, 5.25)
    assert replace(failed, attempts=0, retry_at=0.0) == asked()
    elsewhere = transitions.fallen_back(failed)
    assert replace(elsewhere, endpoint=0) == asked()


def test_attempts_are_counted_in_the_state_and_bounded() -> None:
    state = asked()
    for _ in range(ATTEMPTS_MAX - 1):
        state = transitions.attempt_failed(state, "no answer", sent=False, now=0.0)
        assert state.status is Status.RUNNING
    state = transitions.attempt_failed(state, "no answer", sent=False, now=0.0)
    assert state.status is Status.FAILED
    assert state.reason == f"gave up after {ATTEMPTS_MAX} attempts: no answer"


def test_a_call_that_may_have_been_sent_stays_in_doubt() -> None:
    state = after_reply(asked(), wanted(("hold_seat", "{}")))
    assert not state.doubt
    assert not transitions.attempt_failed(state, "refused", sent=False, now=0.0).doubt
    state = transitions.attempt_failed(state, "reset", sent=True, now=0.0)
    assert transitions.attempt_failed(state, "refused", sent=False, now=0.0).doubt


def test_a_found_state_doubts_its_pending_call_only() -> None:
    state = after_reply(asked(), wanted(("hold_seat", "{}")))
    assert transitions.resumed(state).doubt
    assert not transitions.resumed(asked()).doubt
    assert transitions.resumed(replace(state, doubt=True)).doubt


def test_a_found_state_goes_on_with_its_counts() -> None:
    """Attempts, their pause, and the endpoint that was fallen back to."""
    counted = replace(asked(), attempts=3, retry_at=9.0, endpoint=1)
    assert transitions.resumed(counted) == counted
