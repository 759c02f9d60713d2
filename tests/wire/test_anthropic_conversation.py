"""Conversations of the Messages API: what holds together, and how far each has come."""

import pytest

from chaoskit.wire.anthropic.blocks import texts_of
from chaoskit.wire.anthropic.conversation import place
from chaoskit.wire.anthropic.replies import refusal

GOAL = "Book a flight"
GO = {"role": "user", "content": GOAL}


def _text(text):
    return {"type": "text", "text": text}


def _use(identity):
    return {"type": "tool_use", "id": identity, "name": "f", "input": {}}


def _result(identity, content="ok"):
    return {"type": "tool_result", "tool_use_id": identity, "content": content}


def _user(*blocks):
    return {"role": "user", "content": list(blocks)}


def _model(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def _system(text="Mind the time."):
    return {"role": "system", "content": text}


def _refused(*messages):
    body = {"model": "m", "max_tokens": 9, "messages": list(messages)}
    found = refusal(body)
    return None if found is None else found.message


def _place(*messages):
    found = place({"messages": list(messages)}, GOAL)
    return found.turn, list(found.carried)


WITHOUT_RESULT = (
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately "
    "after: {}. Each `tool_use` block must have a corresponding `tool_result` block "
    "in the next message."
)
WITHOUT_USE = (
    "unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` "
    "block must have a corresponding `tool_use` block in the previous message."
)
NO_PREFILL = (
    "This model does not support assistant message prefill. The conversation must end "
    "with a user message."
)
EMPTY = (
    "all messages must have non-empty content except for the optional final "
    "assistant message"
)

REFUSED = [
    (
        "call without result",
        [GO, _model(_use("a")), _user(_text("well?"))],
        WITHOUT_RESULT.format("a"),
    ),
    (
        "one of two without result",
        [GO, _model(_use("a"), _use("b")), _user(_result("a"))],
        WITHOUT_RESULT.format("b"),
    ),
    (
        "history ends with calls",
        [GO, _model(_use("a"), _use("b"))],
        WITHOUT_RESULT.format("a, b"),
    ),
    (
        "words before the result",
        [GO, _model(_use("a")), _user(_text("x"), _result("a"))],
        WITHOUT_RESULT.format("a"),
    ),
    (
        "result a turn late",
        [
            GO,
            _model(_use("a")),
            _user(_text("x")),
            _model(_text("y")),
            _user(_result("a")),
        ],
        WITHOUT_RESULT.format("a"),
    ),
    (
        "result of nothing",
        [_user(_text(GOAL), _result("a"))],
        "messages.0.content.1: " + WITHOUT_USE.format("a"),
    ),
    (
        "result of another call",
        [GO, _model(_use("a")), _user(_result("a"), _result("b"))],
        "messages.2.content.1: " + WITHOUT_USE.format("b"),
    ),
    (
        "two results",
        [GO, _model(_use("a")), _user(_result("a"), _result("a"))],
        (
            "messages.2.content.1: each tool_use must have a single result. "
            "Found multiple `tool_result` blocks with id: a"
        ),
    ),
    (
        "an id used twice",
        [GO, _model(_use("a"), _use("a")), _user(_result("a"))],
        "messages.1.content.1: `tool_use` ids must be unique",
    ),
    (
        "an id used again",
        [
            GO,
            _model(_use("a")),
            _user(_result("a")),
            _model(_use("a")),
            _user(_result("a")),
        ],
        "messages.3.content.0: `tool_use` ids must be unique",
    ),
    (
        "result of the model",
        [GO, _model(_result("a"))],
        "messages.1: `tool_result` blocks can only be in `user` messages",
    ),
    (
        "call of the user",
        [_user(_use("a"))],
        "messages.0: `tool_use` blocks can only be in `assistant` messages",
    ),
    (
        "the model begins",
        [_model(_text("Hi.")), GO],
        'messages: first message must use the "user" role',
    ),
    (
        "system begins",
        [_system(), GO],
        "messages.0: use the top-level 'system' parameter for the initial system",
    ),
    (
        "system after the model",
        [GO, _model(_text("x")), _system()],
        "messages.2: a message with role 'system' must immediately follow a user",
    ),
    (
        "system before the user",
        [GO, _system(), GO],
        "messages.1: a message with role 'system' must immediately follow a user",
    ),
    ("nothing said", [GO, _model(), GO], f"messages.1: {EMPTY}"),
    ("empty text", [{"role": "user", "content": ""}], f"messages.0: {EMPTY}"),
    ("empty block", [_user(_text(""))], "messages: text content blocks must be non-em"),
    (
        "blank block",
        [_user(_text(" \n"))],
        "messages: text content blocks must contain non-whitespace text",
    ),
    (
        "empty block in a result",
        [GO, _model(_use("a")), _user(_result("a", [_text("")]))],
        "messages: text content blocks must be non-empty",
    ),
    ("the model has the last word", [GO, _model(_text("Well,"))], NO_PREFILL),
]


@pytest.mark.parametrize(
    ("messages", "message"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_what_does_not_hold_together_is_refused(messages, message):
    assert (_refused(*messages) or "").startswith(message)


TAKEN = [
    ("goal", [GO]),
    ("result", [GO, _model(_use("a")), _user(_result("a"), _text("go on"))]),
    ("result without words", [GO, _model(_use("a")), _user(_result("a", ""))]),
    (
        "result with nothing",
        [
            GO,
            _model(_use("a")),
            _user({"type": "tool_result", "tool_use_id": "a", "is_error": True}),
        ],
    ),
    (
        "results in messages of their own",
        [GO, _model(_use("a"), _use("b")), _user(_result("b")), _user(_result("a"))],
    ),
    (
        "one turn in two messages",
        [GO, _model(_text("x")), _model(_use("a")), _user(_result("a"))],
    ),
    ("two users", [GO, {"role": "user", "content": "And soon."}]),
    ("system at the end", [GO, _system()]),
    ("system after results", [GO, _model(_use("a")), _user(_result("a")), _system()]),
    ("system in between", [GO, _system(), _model(_text("x")), GO]),
]


@pytest.mark.parametrize(
    "messages", [case[1] for case in TAKEN], ids=[case[0] for case in TAKEN]
)
def test_what_holds_together_is_taken(messages):
    assert _refused(*messages) is None


def test_the_turn_is_the_number_of_the_models_turns():
    assert _place(GO) == (0, [])
    asked = _model(_text("x"), _use("any-id"))
    assert _place(GO, asked, _user(_result("any-id"))) == (1, ["0.0"])
    halves = [_model(_text("x")), _model(_use("any-id"))]
    assert _place(GO, *halves, _user(_result("any-id"))) == (1, ["0.0"])


def test_ids_that_we_gave_place_a_history_that_was_cut():
    kept = [GO, _model(_use("toolu_t4p0_f"), _use("toolu_t4p1_f"))]
    both = _user(_result("toolu_t4p1_f"), _result("toolu_t4p0_f"))
    assert _place(*kept, both) == (5, ["4.1", "4.0"])


def test_what_came_before_the_task_does_not_count():
    before = [{"role": "user", "content": "Hello"}, _model(_text("Hi."))]
    assert _place(*before, GO) == (0, [])
    assert _place(*before, {"role": "user", "content": "Other"}) == (1, [])
    assert _place(*before, _user(_text("x"), _text(f"Task: {GOAL}"))) == (0, [])


def test_a_goal_in_a_result_is_no_beginning():
    asked = [GO, _model(_use("a")), _user(_result("a", GOAL))]
    assert _place(*asked) == (1, ["0.0"])


def test_broken_conversations_are_placed_as_well_as_may_be():
    broken = [None, {"role": "user", "content": 7}, {"role": "assistant"}, "x"]
    assert _place(*broken)[0] == 1
    assert place({"messages": "x"}, GOAL).turn == 0
    assert _place(GO, _model(None, {"type": 7}, {"type": "tool_use"}))[0] == 1


def test_all_that_is_said_is_told_in_order():
    body = {
        "system": [_text("Be brief.")],
        "messages": [
            GO,
            _model(_text("I will."), _use("a")),
            _user(_result("a", [_text("one"), _text("two")])),
            _user(_result("b", "three"), {"type": "image"}),
        ],
    }
    assert texts_of(body) == ("Be brief.", GOAL, "I will.", "one", "two", "three")
    assert texts_of({"system": "S", "messages": []}) == ("S",)
