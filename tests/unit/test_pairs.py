"""A stored conversation pairs calls with results, whichever API it is for."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.checks.pairs import unpaired

USER = {"role": "user", "content": "Do it"}
CHAT = [
    USER,
    {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}, {"id": "b"}]},
    {"role": "tool", "tool_call_id": "a", "content": "1"},
    {"role": "tool", "tool_call_id": "b", "content": "2"},
    {"role": "assistant", "content": "Done."},
]
RESPONSES = [
    USER,
    {"type": "function_call", "call_id": "a", "name": "pay"},
    {"type": "function_call", "call_id": "b", "name": "pay"},
    {"type": "function_call_output", "call_id": "b", "output": "2"},
    {"type": "function_call_output", "call_id": "a", "output": "1"},
    {"role": "assistant", "content": "Done."},
]
MESSAGES = [
    USER,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
]
RESULT = re.compile("'tool'|tool_result|function_call_output")
ALL = pytest.mark.parametrize("right", [CHAT, RESPONSES, MESSAGES])
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "type", "content", "tool_calls", "id", "call_id"]),
            inner,
            max_size=4,
        )
    ),
)


@ALL
def test_a_whole_conversation_is_right_at_each_of_its_moments(right):
    assert [unpaired(right[:count]) for count in range(len(right) + 1)] == [""] * (
        len(right) + 1
    )


@ALL
def test_a_call_without_its_result_is_found_once_something_follows(right):
    shown = [str(entry) for entry in right]
    result = next(n for n, text in enumerate(shown) if RESULT.search(text))
    assert "has no result" in unpaired([*right[:result], *right[result + 1 :]])


def test_a_second_result_is_found():
    assert "'a' has a second result" in unpaired([*CHAT[:3], CHAT[2]])


def test_a_result_of_no_call_is_found():
    assert "belongs to no call" in unpaired([USER, CHAT[2]])


SAID = {"type": "message", "role": "assistant", "content": "On it."}
REMINDER = {"type": "message", "role": "developer", "content": "Be brief."}


@pytest.mark.parametrize("between", [SAID, REMINDER])
def test_items_may_come_between_a_call_and_its_result(between):
    """More of the same reply, or what somebody else says: the service takes both."""
    right = [*RESPONSES[:2], between, {**RESPONSES[3], "call_id": "a"}, SAID]
    assert [unpaired(right[:count]) for count in range(6)] == [""] * 6


@pytest.mark.parametrize("between", [[RESPONSES[3]], [REMINDER]])
def test_not_so_the_next_reply(between):
    lost = [*RESPONSES[:3], *between, SAID]
    assert unpaired(lost) == "the call 'a' has no result"


def test_the_last_reply_of_a_run_that_is_done_waits_for_nothing():
    calls = [*RESPONSES[:2], SAID]
    assert unpaired(calls) == ""
    assert unpaired(calls, is_over=True) == "the call 'a' has no result"
    assert unpaired(CHAT[:2], is_over=True) == ""


@pytest.mark.parametrize(
    "named_otherwise",
    [
        [*CHAT[:2], {"role": "tool", "call_id": "a"}, CHAT[4]],
        [USER, {"role": "assistant", "tool_calls": [{"function": {}}]}, CHAT[4]],
        [*RESPONSES[:2], {"type": "function_call_output", "id": "a"}, SAID],
        [USER, {"role": "assistant", "content": [{"type": "tool_use"}]}, USER],
    ],
)
def test_where_calls_are_named_otherwise_nothing_is_said(named_otherwise):
    assert unpaired(named_otherwise) == ""


@given(json)
def test_of_anything_else_nothing_is_said_and_nothing_raised(value):
    assert isinstance(unpaired(value), str)
