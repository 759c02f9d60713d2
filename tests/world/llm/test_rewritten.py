"""What a request tells of the model's own calls is held against what the model said."""

import json

import pytest

from chaoskit.model.history import Asked
from chaoskit.world.llm import Llm
from chaoskit.world.llm.service import CANARY

USER = {"role": "user", "content": "Book a flight to NYC"}
FORMS = [
    ("search", {"to": "NYC"}, {}),
    ("search", {"since": None, "to": "NYC"}, {}),
    ("search", {"to": "LAX"}, {"0.0": "search(to='LAX')"}),
    ("search", {}, {"0.0": "search()"}),
    ("find", {"to": "NYC"}, {"0.0": "find(to='NYC')"}),
    ("search", {"to": CANARY}, {"0.0": "search(to='{canary}')"}),
]


async def _by_chat(clients, tool, args):
    client, model = clients["openai"], {"model": "m"}
    reply = await client.chat.completions.create(messages=[USER], **model)
    said = reply.choices[0].message.model_dump(exclude_none=True)
    (call,) = said["tool_calls"]
    call["function"] = {"name": tool, "arguments": json.dumps(args)}
    done = {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
    await client.chat.completions.create(messages=[USER, said, done], **model)


async def _by_responses(clients, tool, args):
    client = clients["openai"]
    reply = await client.responses.create(model="m", input=[USER])
    call = reply.output[0].model_dump(exclude_none=True)
    told = {**call, "name": tool, "arguments": json.dumps(args)}
    done = {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
    await client.responses.create(model="m", input=[USER, told, done])


async def _by_messages(clients, tool, args):
    client, given = clients["anthropic"], {"model": "m", "max_tokens": 99}
    reply = await client.messages.create(messages=[USER], **given)
    call = {"type": "tool_use", "id": reply.content[0].id, "name": tool, "input": args}
    said = {"role": "assistant", "content": [call]}
    done = {"type": "tool_result", "tool_use_id": call["id"], "content": "ok"}
    last = {"role": "user", "content": [done]}
    await client.messages.create(messages=[USER, said, last], **given)


@pytest.mark.parametrize(("tool", "args", "rewritten"), FORMS)
@pytest.mark.parametrize("go_on", [_by_chat, _by_responses, _by_messages])
async def test_a_call_that_is_told_otherwise_is_recorded(
    serve, make_gate, scenario, openai_at, anthropic_at, go_on, tool, args, rewritten
):
    gate = make_gate()
    served = serve(Llm(), gate, scenario)
    async with served as env, openai_at(env) as one, anthropic_at(env) as other:
        await go_on({"openai": one, "anthropic": other}, tool, args)
    first, second = gate.of(Asked)
    assert first.rewritten == {}
    assert second.rewritten == rewritten
    assert second.carried == ("0.0",)


async def test_arguments_that_are_no_json_are_told_as_they_are(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        reply = await client.chat.completions.create(model="m", messages=[USER])
        said = reply.choices[0].message.model_dump(exclude_none=True)
        said["tool_calls"][0]["function"]["arguments"] = '{"to":"N'
        done = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"]}
        messages = [USER, said, {**done, "content": "ok"}]
        await client.chat.completions.create(model="m", messages=messages)
    assert gate.of(Asked)[1].rewritten == {"0.0": 'search({"to":"N)'}


async def test_an_id_of_the_agent_s_own_says_nothing_of_its_call(
    serve, make_gate, scenario, openai_at
):
    """Which call it is cannot be told for sure where a history was cut."""
    call = {"id": "a", "type": "function"}
    call["function"] = {"name": "pay", "arguments": "{}"}
    said = {"role": "assistant", "tool_calls": [call]}
    done = {"role": "tool", "tool_call_id": "a", "content": "ok"}
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        messages = [USER, said, done]
        await client.chat.completions.create(model="m", messages=messages)
    assert gate.of(Asked)[0].rewritten == {}
