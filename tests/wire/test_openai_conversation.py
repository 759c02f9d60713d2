"""Conversations: the pairing of calls and results, and the place in the script."""

import pytest

from chaoskit.wire.openai.chat import refusal
from chaoskit.wire.openai.chat_conversation import place
from chaoskit.wire.said import placed_id, without_fresh_part

GOAL = "Book a flight to NYC"
USER = {"role": "user", "content": GOAL}
SAID = {"role": "assistant", "content": "Well."}


def _calls(*ids):
    function = {"name": "f", "arguments": "{}"}
    made = [{"id": i, "type": "function", "function": function} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def _result(identity, content="ok"):
    return {"role": "tool", "tool_call_id": identity, "content": content}


def _refusal(*messages):
    return refusal({"model": "any", "messages": list(messages)})


NO_CALL = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
    "message with 'tool_calls'."
)
NO_RESULT = (
    "An assistant message with 'tool_calls' must be followed by tool messages "
    "responding to each 'tool_call_id'. The following tool_call_ids did not have "
    "response messages: "
)

BROKEN = [
    ("a result without a call", [USER, _result("a")], "messages.[1].role", NO_CALL),
    (
        "a result after something else",
        [USER, _calls("a"), _result("a"), USER, _result("a")],
        "messages.[4].role",
        NO_CALL,
    ),
    (
        "a call without its result, at the end",
        [USER, _calls("a")],
        "messages",
        f"{NO_RESULT}a",
    ),
    (
        "two of three results missing",
        [USER, _calls("a", "b", "c"), _result("b"), SAID],
        "messages.[3].role",
        f"{NO_RESULT}a, c",
    ),
    (
        "a result for another call",
        [USER, _calls("a"), _result("b")],
        "messages.[2].tool_call_id",
        (
            "Invalid parameter: 'tool_call_id' of 'b' not found in 'tool_calls' of "
            "previous message."
        ),
    ),
    (
        "two results for one call",
        [USER, _calls("a"), _result("a"), _result("a")],
        "messages.[3].tool_call_id",
        (
            "Invalid parameter: Duplicate value for 'tool_call_id' of 'a', in "
            "messages[2] and messages[3]."
        ),
    ),
    (
        "one id for two calls",
        [USER, _calls("a", "a"), _result("a")],
        "messages.[1].tool_calls",
        "Invalid parameter: Duplicate value for 'tool_call_id' of 'a' in messages[1].",
    ),
    (
        "a result without an id",
        [USER, _calls("a"), {"role": "tool", "content": "x"}],
        "messages.[2].tool_call_id",
        (
            "Missing parameter 'tool_call_id': messages with role 'tool' must have a "
            "'tool_call_id'."
        ),
    ),
]


@pytest.mark.parametrize(
    ("messages", "param", "message"),
    [b[1:] for b in BROKEN],
    ids=[b[0] for b in BROKEN],
)
def test_a_broken_pairing_gets_the_real_error(messages, param, message):
    found = _refusal(*messages)
    assert found is not None
    assert (found.param, found.code, found.message) == (param, None, message)


def test_results_in_any_order_and_ids_used_again_later_are_fine():
    first = [_calls("a", "b"), _result("b"), _result("a")]
    assert _refusal(USER, *first, SAID, USER, *first) is None


def test_the_place_is_the_number_of_assistant_turns():
    conversation = [USER, _calls("x"), _result("x"), SAID, USER]
    assert [place(conversation[:n], GOAL).turn for n in range(6)] == [0, 0, 1, 1, 2, 2]


def test_the_task_begins_at_the_message_that_holds_the_goal():
    earlier = [{"role": "user", "content": "hello"}, SAID]
    parts = [{"type": "text", "text": f"Please: {GOAL}."}]
    goal = {"role": "user", "content": parts}
    assert place([*earlier, goal], GOAL).turn == 0
    assert place([*earlier, goal, SAID], GOAL).turn == 1
    assert place(earlier, GOAL).turn == 1, "no goal: from the user's first message"


def test_our_ids_give_the_place_of_a_history_that_was_summed_up():
    ours = placed_id("call", 3, 0, "0123456789abcdef")
    summary = {"role": "user", "content": f"So far, for {GOAL}: much was done."}
    short = [summary, _calls(ours), _result(ours)]
    assert place(short, GOAL).turn == 4
    assert place([*short, SAID], GOAL).turn == 5


def test_parallel_calls_in_messages_of_their_own_are_one_turn():
    one, other = placed_id("call", 1, 0, "aa"), placed_id("call", 1, 1, "aa")
    split = [SAID, _calls(one), _result(one), _calls(other), _result(other)]
    found = place([USER, *split], GOAL)
    assert found.turn == 2
    assert list(found.carried) == ["1.0", "1.1"]


def test_results_are_named_by_our_ids_or_by_their_place():
    ours = placed_id("call", 0, 1, "ff")
    found = place([USER, _calls("x", ours), _result(ours), _result("x")], GOAL)
    assert list(found.carried) == ["0.1", "0.0"]


@pytest.mark.parametrize(
    "broken",
    [
        {"role": "assistant", "tool_calls": "x"},
        {"role": "assistant", "tool_calls": [7, {"id": None}, {"id": {}}]},
        {"role": "tool"},
        {"role": []},
        {"role": "user", "content": [{"text": 7}, 8, None]},
        {},
    ],
)
def test_a_broken_conversation_still_has_a_place(broken):
    assert place([USER, SAID, broken], GOAL).turn in (1, 2)


def test_problems_read_the_same_in_every_run():
    text = f"no response: {placed_id('call', 2, 1, '00ff')}, call_other"
    assert without_fresh_part(text) == "no response: call_t2p1, call_other"
