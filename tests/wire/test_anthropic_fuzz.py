"""Whatever JSON comes, the answer is a message or a refusal, never a crash."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.wire.anthropic.blocks import texts_of
from chaoskit.wire.anthropic.content import BLOCKS
from chaoskit.wire.anthropic.conversation import place
from chaoskit.wire.anthropic.replies import answer, count_refusal, refusal
from chaoskit.wire.anthropic.request import ALLOWED, REQUIRED
from chaoskit.wire.anthropic.terms import Terms
from chaoskit.wire.said import Ids, Said

FIELDS = [*REQUIRED, *ALLOWED]
WORDS = [*BLOCKS, "user", "assistant", "system", "c1", "auto", "tool", "object"]
KEYS = [
    *FIELDS,
    *("role", "content", "type", "name", "id", "text", "input", "input_schema"),
    *("tool_use_id", "cache_control", "budget_tokens", "is_error", "ttl"),
]

MARK = {"type": "ephemeral", "ttl": "5m"}

VALID = {
    "model": "m",
    "max_tokens": 2000,
    "system": [{"type": "text", "text": "be brief", "cache_control": MARK}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "well"},
                {"type": "tool_use", "id": "c1", "name": "pay", "input": {"o": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "ok"}],
                    "is_error": False,
                },
                {"type": "text", "text": "go on"},
            ],
        },
        {"role": "system", "content": "mind the time"},
    ],
    "tools": [{"name": "pay", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "tool", "name": "pay"},
    "thinking": {"type": "adaptive"},
    "metadata": {"user_id": "u"},
    "stop_sequences": ["END"],
}
COUNTED = {k: v for k, v in VALID.items() if k in ("model", "messages", "tools")}


@pytest.fixture(scope="module")
def broken(breaking):
    return breaking(WORDS, KEYS)


def _judge(body):
    for terms in (Terms("2023-06-01"), Terms(beta=True)):
        assert getattr(refusal(body, terms), "status", 400) == 400
    found = refusal(body)
    turn = place(body, "go").turn
    assert isinstance(texts_of(body), tuple)
    if found is None:
        said = Said(turn, "Done.", (("pay", '{"o":1}'),))
        told = answer(body, said, Ids(turn, ("f",)))
        assert told.message()["content"]
        assert told.events()[-1] == {"type": "message_stop"}
        assert told.paid.prompt >= 0
        assert min(told.paid.plain, told.paid.written, told.paid.read) >= 0
    else:
        assert found.body("req")["error"]["message"]
        assert 400 <= found.status < 500


@settings(deadline=None)
@given(data=st.data())
def test_any_object_is_judged(broken, data):
    _judge(broken.any_object(FIELDS, data))


@settings(deadline=None)
@given(data=st.data())
def test_a_valid_request_with_one_part_replaced_is_judged(broken, data):
    _judge(broken.replaced(VALID, data))


@settings(deadline=None)
@given(data=st.data())
def test_a_request_to_count_with_one_part_replaced_is_judged(broken, data):
    found = count_refusal(broken.replaced(COUNTED, data))
    assert found is None or found.status == 400


@settings(deadline=None)
@given(data=st.data())
def test_a_valid_request_with_one_part_left_out_is_judged(broken, data):
    _judge(broken.left_out(VALID, data))


def test_the_requests_that_are_broken_above_are_valid():
    assert refusal(VALID) is None
    assert count_refusal(COUNTED) is None
