"""Whatever JSON comes, the answer is a response or a refusal, never a crash."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.model.script import Call, CallTurn, Llm, SayTurn
from chaoskit.wire.openai.responses import prompt_tokens, refusal, whole
from chaoskit.wire.openai.responses_items import conversation, place
from chaoskit.wire.openai.responses_request import RULES
from chaoskit.wire.openai.responses_stream import Stream
from chaoskit.wire.said import Ids
from chaoskit.wire.wobble import said_at

WORDS = ["user", "message", "function_call", "reasoning", "text", "c"]
KEYS = ["type", "id", "role", "content", "call_id", "output"]

VALID = {
    "model": "m",
    "instructions": "go",
    "input": [
        {"role": "user", "content": "ping"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c",
            "name": "f",
            "arguments": "{}",
        },
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "x", "annotations": [], "logprobs": []}
            ],
        },
    ],
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
    "tool_choice": {"type": "function", "name": "f"},
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"format": {"type": "text"}},
    "include": ["reasoning.encrypted_content"],
}
LLM = Llm(
    script=(CallTurn(call=(Call(tool="pay", args={"o": 1}),)), SayTurn(say="Done."))
)


def _judge(body):
    found = refusal(body, {})
    if found is not None:
        assert found.body()["error"]["message"]
        assert 400 <= found.status < 500
        return
    items = conversation(body, {})
    turn = place(items, "go").turn
    ids, prompt = Ids(turn, ("f",)), prompt_tokens(body, {})
    assert whole(body, said_at(LLM, turn), ids, prompt)["output"]
    assert Stream(body, said_at(LLM, turn), ids, prompt).events()


@pytest.fixture(scope="module")
def broken(breaking):
    return breaking(WORDS, KEYS)


@settings(deadline=None)
@given(data=st.data())
def test_any_object_is_judged(broken, data):
    _judge(broken.any_object(RULES, data))


@settings(deadline=None)
@given(data=st.data())
def test_a_valid_request_with_one_part_replaced_is_judged(broken, data):
    _judge(broken.replaced(VALID, data))


def test_the_request_that_is_broken_above_is_valid():
    assert refusal(VALID, {}) is None
