"""Whatever JSON comes, the answer is a completion or a refusal, never a crash."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.model.scenario import Call, CallTurn, Llm, SayTurn
from chaoskit.wire.openai.chat import completion, prompt_tokens, refusal
from chaoskit.wire.openai.chat_stream import DONE, events
from chaoskit.wire.openai.conversation import place
from chaoskit.wire.openai.request import ROLES, RULES
from chaoskit.wire.said import Ids
from chaoskit.wire.wobble import said_at

SCRIPT = (CallTurn(call=(Call(tool="pay", args={"o": 1}),)), SayTurn(say="Done."))
LLM = Llm(script=SCRIPT)
WORDS = [*ROLES, "function", "text", "auto", "c1", "json_schema", "object"]
KEYS = [
    *RULES,
    *("role", "content", "type", "function", "name", "arguments", "id", "text"),
    *("tool_call_id", "parameters", "json_schema", "refusal"),
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

VALID = {
    "model": "m",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "pay", "arguments": "{}"},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ],
    "tools": [{"type": "function", "function": {"name": "pay", "parameters": {}}}],
    "tool_choice": {"type": "function", "function": {"name": "pay"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "x"}},
    "metadata": {"k": "v"},
    "n": 2,
}


def _judge(body):
    found = refusal(body)
    if found is None:
        turn = place(body["messages"], "go").turn
        said, fresh = said_at(LLM, turn), [str(n) for n in range(body.get("n") or 1)]
        assert completion(body, said, Ids(turn, tuple(fresh)))["choices"]
        assert events(body, said, Ids(turn, tuple(fresh)))[-1] == DONE
        assert prompt_tokens(body) >= 0
    else:
        assert found.body()["error"]["message"]
        assert 400 <= found.status < 500


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*RULES]) | st.text(max_size=3), ANY_JSON))
def test_any_object_is_judged(body):
    _judge(body)


@settings(deadline=None)
@given(st.data())
def test_a_valid_request_with_one_part_replaced_is_judged(data):
    body = copy.deepcopy(VALID)
    *way, last = data.draw(st.sampled_from(_ways(VALID)))
    inner = body
    for key in way:
        inner = inner[key]
    inner[last] = data.draw(ANY_JSON)
    _judge(body)


def _ways(value, way=()):
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    else:
        return []
    inner = [found for key, item in items for found in _ways(item, (*way, key))]
    return [*((*way, key) for key, _ in items), *inner]


def test_the_request_that_is_broken_above_is_valid():
    assert refusal(VALID) is None
