"""Answers: what the script says, in the shape of the real API."""

from chaoskit.model.scenario import AskTurn, Call, CallTurn, Llm, SayTurn, WaitTurn
from chaoskit.wire.openai.chat import completion, prompt_tokens
from chaoskit.wire.openai.models import models
from chaoskit.wire.said import Ids, tokens
from chaoskit.wire.wobble import said_at

SCRIPT = (
    CallTurn(
        call=(Call(tool="hold", args={"b": 1, "a": "ü"}), Call(tool="pay", args={}))
    ),
    AskTurn(ask="Approve?"),
    WaitTurn(wait=3),
    SayTurn(say="Booked."),
)
LLM = Llm(script=SCRIPT)
BODY = {"model": "gpt-9", "messages": [{"role": "user", "content": "12345"}]}


def _completion(turn, fresh=("f0",), body=BODY):
    return completion(body, said_at(LLM, turn), Ids(turn, fresh))


def _message(turn):
    return _completion(turn)["choices"][0]["message"]


def _called(turn):
    return [call["function"] for call in _message(turn)["tool_calls"]]


def test_calls_carry_turn_and_position_and_json_text():
    made = _message(0)["tool_calls"]
    assert [call["id"] for call in made] == ["call_t0p0_f0", "call_t0p1_f0"]
    assert made[0]["function"] == {"name": "hold", "arguments": '{"b":1,"a":"ü"}'}


def test_gates_and_waits_are_calls_that_the_agent_serves():
    assert _called(1) == [{"name": "ask_human", "arguments": '{"question":"Approve?"}'}]
    assert _called(2) == [{"name": "wait", "arguments": '{"seconds":3}'}]


def test_past_its_end_the_script_repeats_its_last_word():
    assert _message(3)["content"] == _message(9)["content"] == "Booked."
    assert said_at(LLM, 9).turn == 9


def test_a_completion_has_every_field_of_the_real_one():
    said = _completion(3)
    assert said["id"] == "chatcmpl-t3-f0"
    assert said["object"] == "chat.completion"
    assert said["model"] == "gpt-9"
    assert said["choices"][0]["finish_reason"] == "stop"
    assert _completion(0)["choices"][0]["finish_reason"] == "tool_calls"
    usage = said["usage"]
    assert usage["prompt_tokens"] == 3 + 2
    assert usage["completion_tokens"] == 2
    assert usage["total_tokens"] == 7
    assert usage["prompt_tokens_details"]["cached_tokens"] == 0
    assert usage["completion_tokens_details"]["reasoning_tokens"] == 0


def test_alternatives_are_alike_but_for_their_ids():
    said = _completion(0, ("f0", "f1"))
    ids = [choice["message"]["tool_calls"][0]["id"] for choice in said["choices"]]
    assert ids == ["call_t0p0_f0", "call_t0p0_f1"]
    assert [choice["index"] for choice in said["choices"]] == [0, 1]


def test_tokens_are_counted_by_length_calls_and_tools_included():
    assert [tokens(text) for text in ("", "1", "1234", "12345")] == [0, 1, 1, 2]
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    longer = {**BODY, "messages": [*BODY["messages"], asked]}
    assert prompt_tokens(longer) > prompt_tokens(BODY)
    assert prompt_tokens({**BODY, "tools": [{"type": "function"}]}) > prompt_tokens(
        BODY
    )


def test_models_are_listed_as_the_real_api_lists_them():
    (only,) = models("m")["data"]
    assert (only["id"], only["object"]) == ("m", "model")


def test_long_prompts_are_cached_in_steps_and_efforts_are_paid_for():
    words = {"role": "user", "content": "x" * 4 * 1400}
    usage = _completion(3, body={**BODY, "messages": [words]})["usage"]
    assert usage["prompt_tokens"] == 1403
    assert usage["prompt_tokens_details"]["cached_tokens"] == 1280
    usage = _completion(3, ("a", "b"), {**BODY, "reasoning_effort": "low"})["usage"]
    assert usage["completion_tokens_details"]["reasoning_tokens"] == 128
    assert usage["completion_tokens"] == 2 * 2 + 128


def test_an_answer_at_its_limit_is_cut_in_its_last_part_and_says_so():
    said = said_at(LLM, 0).cut_short()
    assert said.called == (("hold", '{"b":1,"a":"ü"}'), ("pay", "{"))
    choice = completion(BODY, said, Ids(0, ("f",)))["choices"][0]
    assert choice["finish_reason"] == "length"
    assert said_at(LLM, 3).cut_short().content == "Boo"
