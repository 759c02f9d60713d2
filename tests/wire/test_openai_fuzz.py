"""Whatever JSON comes, the answer is a completion or a refusal, never a crash."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.model.scenario import Call, CallTurn, Llm, SayTurn
from chaoskit.wire.openai.chat import completion, prompt_tokens, refusal
from chaoskit.wire.openai.chat_conversation import place
from chaoskit.wire.openai.chat_messages import ROLES
from chaoskit.wire.openai.chat_request import RULES
from chaoskit.wire.openai.chat_stream import DONE, events
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
    "store": True,
    "n": 2,
}


@pytest.fixture(scope="module")
def broken(breaking):
    return breaking(WORDS, KEYS)


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
@given(data=st.data())
def test_any_object_is_judged(broken, data):
    _judge(broken.any_object(RULES, data))


@settings(deadline=None)
@given(data=st.data())
def test_a_valid_request_with_one_part_replaced_is_judged(broken, data):
    _judge(broken.replaced(VALID, data))


def test_the_request_that_is_broken_above_is_valid():
    assert refusal(VALID) is None
