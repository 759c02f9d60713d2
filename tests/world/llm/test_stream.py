"""Streamed Chat Completions, read by the official client over real sockets."""

import asyncio
import json

import httpx2
import openai
import pytest

from chaoskit.model.history import Asked, Crossed, FaultFired
from chaoskit.wire.sse import Reader
from chaoskit.world.llm import Llm

USER = {"role": "user", "content": "Book a flight to NYC"}
TOOLS = {"hold": "keyed", "pay": "keyed"}
SCRIPT = [
    {
        "call": [
            {"tool": "hold", "args": {"order": "o-1"}},
            {"tool": "pay", "args": {"order": "o-1", "cents": 42000}},
        ]
    },
    {"say": "Booked."},
]
USAGE = {"include_usage": True}


@pytest.fixture
def scenario(make_scenario):
    return make_scenario(SCRIPT, TOOLS)


async def _stream(client, **more):
    messages = more.pop("messages", [USER])
    return await client.chat.completions.create(
        model="m", messages=messages, stream=True, **more
    )


async def _chunks(client, **more):
    return [chunk async for chunk in await _stream(client, **more)]


def _result(call):
    return {"role": "tool", "tool_call_id": call.id, "content": "ok"}


async def test_a_stream_tells_what_a_whole_reply_tells(
    serve, make_gate, make_scenario, openai_at
):
    scenario = make_scenario(SCRIPT, TOOLS, fresh_ids=False)
    async with serve(Llm(), make_gate(), scenario) as env, openai_at(env) as client:
        asked = client.chat.completions
        whole = await asked.create(model="m", messages=[USER])
        async with asked.stream(
            model="m", messages=[USER], stream_options=USAGE
        ) as stream:
            kinds = [event.type async for event in stream]
            streamed = await stream.get_final_completion()
    assert streamed.usage == whole.usage
    assert streamed.id == whole.id
    one, other = streamed.choices[0], whole.choices[0]
    assert one.finish_reason == other.finish_reason == "tool_calls"
    assert [c.id for c in one.message.tool_calls] == [
        c.id for c in other.message.tool_calls
    ]
    assert [c.function.arguments for c in one.message.tool_calls] == [
        c.function.arguments for c in other.message.tool_calls
    ]
    assert "tool_calls.function.arguments.done" in kinds


async def test_arguments_come_in_pieces_and_a_call_before_its_arguments(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        chunks = await _chunks(client)
    assert gate.of(Asked)[-1].whole == len(chunks)
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert (deltas[0].role, deltas[0].content) == ("assistant", None)
    parts = [call for delta in deltas for call in delta.tool_calls or ()]
    named = [part for part in parts if part.id]
    assert [(p.index, p.function.name, p.function.arguments) for p in named] == [
        (0, "hold", ""),
        (1, "pay", ""),
    ]
    for index, args in ((0, {"order": "o-1"}), (1, {"order": "o-1", "cents": 42000})):
        pieces = [p.function.arguments for p in parts if p.index == index][1:]
        assert len(pieces) > 1
        assert json.loads("".join(pieces)) == args
    assert [c.choices[0].finish_reason for c in chunks][-2:] == [None, "tool_calls"]
    assert all(chunk.usage is None for chunk in chunks)


async def test_words_come_in_pieces_and_usage_last_in_a_chunk_of_its_own(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        first = await client.chat.completions.create(model="m", messages=[USER])
        said = first.choices[0].message
        messages = [USER, said.model_dump(exclude_none=True)]
        messages += map(_result, said.tool_calls)
        chunks = await _chunks(client, messages=messages, stream_options=USAGE)
    *words, last = chunks
    pieces = [chunk.choices[0].delta.content for chunk in words]
    assert "".join(filter(None, pieces)) == "Booked."
    assert len(list(filter(None, pieces))) > 1
    assert last.choices == []
    paid = gate.of(Asked)[-1]
    assert last.usage.completion_tokens == paid.completion_tokens
    assert last.usage.prompt_tokens == paid.prompt_tokens
    assert paid.whole == len(words)


async def test_alternatives_are_streamed_each_under_its_index(
    serve, make_gate, scenario, openai_at
):
    async with serve(Llm(), make_gate(), scenario) as env, openai_at(env) as client:
        chunks = await _chunks(client, n=2)
    ids = {
        (chunk.choices[0].index, call.id)
        for chunk in chunks
        for call in chunk.choices[0].delta.tool_calls or ()
        if call.id
    }
    assert sorted(index for index, _ in ids) == [0, 0, 1, 1]
    assert len({identity for _, identity in ids}) == 4


async def test_a_raw_stream_ends_in_done_and_has_an_event_for_each_piece(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        raw = client.chat.completions.with_raw_response
        reply = await raw.create(model="m", messages=[USER], stream=True)
        body = await reply.http_response.aread()
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["x-request-id"].startswith("req_")
    events = list(Reader().feed(body))
    assert events[-1].data == "[DONE]"
    crossed = gate.of(Crossed)
    assert {event.pieces for event in crossed} == {len(events)}


async def test_a_refused_stream_is_refused_before_it_begins(
    serve, make_gate, scenario, openai_at
):
    async with serve(Llm(), make_gate(), scenario) as env, openai_at(env) as client:
        with pytest.raises(openai.BadRequestError) as refused:
            await _stream(client, messages=[])
    assert refused.value.code == "empty_array"


async def test_an_error_in_the_middle_comes_inside_a_200(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate("error(503)@0:llm.chat#1:part:3")
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        with pytest.raises(openai.APIError) as broken:
            await _chunks(client)
        assert await _chunks(client), "only the first one was broken"
    assert not isinstance(broken.value, openai.APIStatusError)
    assert broken.value.code == "server_is_overloaded"
    assert gate.of(FaultFired)


async def test_a_reply_at_its_limit_ends_in_its_middle_without_an_error(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate("error(length)@0:llm.chat#1:part:4")
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        chunks = await _chunks(client, stream_options=USAGE)
        whole = await _chunks(client)
    assert chunks[-2].choices[0].finish_reason == "length"
    assert chunks[-1].usage is not None
    arguments = [
        call.function.arguments
        for chunk in chunks[:-1]
        for call in chunk.choices[0].delta.tool_calls or ()
    ]
    with pytest.raises(json.JSONDecodeError):
        json.loads("".join(arguments))
    assert whole[-1].choices[0].finish_reason == "tool_calls"


def test_the_sync_client_reads_the_same(make_gate, make_scenario, serve):
    """A thread asks while the loop serves."""

    def ask(env):
        plain = httpx2.Client(verify=False, trust_env=False)
        client = openai.OpenAI(
            base_url=env["OPENAI_BASE_URL"],
            api_key=env["OPENAI_API_KEY"],
            max_retries=0,
            timeout=30,
            http_client=plain,
        )
        asked = client.chat.completions.stream(model="m", messages=[USER])
        with client, asked as stream:
            return stream.until_done().get_final_completion()

    async def both():
        scenario = make_scenario(SCRIPT, TOOLS)
        async with serve(Llm(), make_gate(), scenario) as env:
            return await asyncio.to_thread(ask, env)

    made = asyncio.run(both()).choices[0].message.tool_calls
    assert [call.function.name for call in made] == ["hold", "pay"]


async def test_a_request_that_comes_by_bytes_is_answered_like_a_whole_one(
    serve, make_gate, make_scenario
):
    scenario = make_scenario(SCRIPT, TOOLS, fresh_ids=False)
    async with serve(Llm(), make_gate(), scenario) as env:
        port = int(env["OPENAI_BASE_URL"].split(":")[2].split("/")[0])
        body = json.dumps({"model": "m", "messages": [USER], "stream": True})
        sent = (
            "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Authorization: Bearer {env['OPENAI_API_KEY']}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        ).encode()
        got = []
        for pieces in ([sent], [bytes([byte]) for byte in sent]):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            got.append((await reader.read()).partition(b"\r\n\r\n")[2])
            writer.close()
    assert got[0] == got[1]
    assert b"[DONE]" in got[0]
