"""Whatever JSON comes, the answer is a message or a refusal, never a crash."""

import copy

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

ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=4
        )
    ),
    max_leaves=20,
)
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
@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), ANY_JSON))
def test_any_object_is_judged(body):
    _judge(body)


@settings(deadline=None)
@given(st.data())
def test_a_valid_request_with_one_part_replaced_is_judged(data):
    _judge(_damaged(VALID, data))


@settings(deadline=None)
@given(st.data())
def test_a_request_to_count_with_one_part_replaced_is_judged(data):
    found = count_refusal(_damaged(COUNTED, data))
    assert found is None or found.status == 400


@settings(deadline=None)
@given(st.data())
def test_a_valid_request_with_one_part_left_out_is_judged(data):
    body = copy.deepcopy(VALID)
    *way, last = data.draw(st.sampled_from(_ways(VALID)))
    inner = body
    for key in way:
        inner = inner[key]
    del inner[last]
    _judge(body)


def _damaged(valid, data):
    body = copy.deepcopy(valid)
    *way, last = data.draw(st.sampled_from(_ways(valid)))
    inner = body
    for key in way:
        inner = inner[key]
    inner[last] = data.draw(ANY_JSON)
    return body


def _ways(value, way=()):
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    else:
        return []
    inner = [found for key, item in items for found in _ways(item, (*way, key))]
    return [*((*way, key) for key, _ in items), *inner]


def test_the_requests_that_are_broken_above_are_valid():
    assert refusal(VALID) is None
    assert count_refusal(COUNTED) is None
