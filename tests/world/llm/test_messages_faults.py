"""What each fault is on `llm.messages`, seen by plain and by the official client."""

import asyncio
import json
import time
from contextlib import asynccontextmanager

import anthropic
import httpx2
import pytest

from chaoskit.model.history import Asked, Crossed
from chaoskit.world.llm import Llm

AT = "0:llm.messages#1"
USER = {"role": "user", "content": "Book a flight to NYC"}
BODY = {"model": "m", "max_tokens": 99, "messages": [USER]}
SCRIPT = [{"call": [{"tool": "search", "args": {"to": "NYC"}}]}, {"say": "Done."}]
KINDS = [
    *("message_start", "content_block_start", "ping"),
    *["content_block_delta"] * 4,
    *("content_block_stop", "message_delta", "message_stop"),
]
"""The events of the stream that answers the first question, one piece each."""
ARGUMENTS = ("", '{"to', '":"N', 'YC"}')
ERRORS = {
    "429": "rate_limit_error",
    "500": "api_error",
    "503": "api_error",
    "529": "overloaded_error",
}


@pytest.fixture
def ask(post):
    """Ask one question, on a connection of its own."""

    async def ask(env, *, stream=True):
        headers = {
            "x-api-key": env["ANTHROPIC_API_KEY"],
            "anthropic-version": "2026-10-21",
        }
        url = f"{env['ANTHROPIC_BASE_URL']}/v1/messages"
        return await post(url, {**BODY, "stream": stream}, headers)

    return ask


@pytest.fixture
def trial(faulted, make_scenario, ask):
    @asynccontextmanager
    async def run(schedule, killed=None, **more):
        async def clean(env):
            got = await ask(env)
            assert (got.status, got.cut, got.kinds) == (200, False, KINDS)
            assert await _answers(llm) == 1

        scenario, llm = make_scenario(SCRIPT, {"search": "read"}, **more), Llm()
        async with faulted(llm, scenario, schedule, clean, killed) as (gate, env):
            yield gate, env, llm

    return run


async def _answers(llm):
    return (await llm.snapshot()).replies


@pytest.mark.proves("agent.kill")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("stream", [True, False])
async def test_kill(trial, edge, count, stream, ask):
    killed = []
    async with trial(f"kill@{AT}:{edge}", killed) as (_, env, llm):
        with pytest.raises(ConnectionResetError):
            await ask(env, stream=stream)
        assert (killed, await _answers(llm)) == ([0], count)


@pytest.mark.proves("agent.kill")
async def test_kill_inside_a_stream(trial, ask):
    killed = []
    async with trial(f"kill@{AT}:part:5", killed) as (gate, env, _):
        got = await ask(env)
        assert (got.kinds, got.cut, killed) == (KINDS[:5], True, [0])
        assert gate.edges() == ["before", "after", "part:5"]


@pytest.mark.proves("llm.refuse")
@pytest.mark.parametrize("stream", [True, False])
async def test_refuse(trial, stream, ask):
    async with trial(f"refuse@{AT}:before") as (gate, env, llm):
        with pytest.raises(ConnectionResetError):
            await ask(env, stream=stream)
        assert await _answers(llm) == 0
        assert gate.edges() == ["before"]
        assert (await ask(env, stream=stream)).status == 200


@pytest.mark.proves("llm.drop_reply")
@pytest.mark.parametrize("stream", [True, False])
async def test_drop_reply(trial, stream, ask):
    async with trial(f"drop_reply@{AT}:after") as (gate, env, llm):
        with pytest.raises(ConnectionResetError):
            await ask(env, stream=stream)
        assert await _answers(llm) == 1
        assert gate.edges() == ["before", "after"]
        assert (await ask(env, stream=stream)).status == 200
        assert [event.turn for event in gate.of(Asked)] == [0, 0]


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("edge", ["before", "after"])
@pytest.mark.parametrize("argument", ERRORS)
@pytest.mark.parametrize("stream", [True, False])
async def test_error(trial, edge, argument, stream, ask):
    async with trial(f"error({argument})@{AT}:{edge}") as (gate, env, _):
        got = await ask(env, stream=stream)
        assert (got.status, got.cut) == (int(argument), False)
        assert got.json["type"] == "error"
        assert got.json["error"]["type"] == ERRORS[argument]
        assert got.json["request_id"] == got.headers["request-id"]
        assert got.headers["x-should-retry"] == "true"
        assert got.headers.get("retry-after") == ("1" if argument == "429" else None)
        assert got.headers["content-type"].startswith("application/json")
        assert gate.edges() == ["before", "after"][: 1 + (edge == "after")]
        assert (await ask(env, stream=stream)).status == 200


CLASSES = {
    "429": anthropic.RateLimitError,
    "500": anthropic.InternalServerError,
    "503": anthropic.InternalServerError,
    "529": anthropic.InternalServerError,
}


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("argument", ERRORS)
async def test_an_error_is_the_official_clients_own(trial, argument, anthropic_at):
    async with (
        trial(f"error({argument})@{AT}:before") as (_, env, _),
        anthropic_at(env) as client,
    ):
        with pytest.raises(CLASSES[argument]) as failed:
            await client.messages.create(**BODY)
        assert failed.value.status_code == int(argument)
        assert failed.value.type == ERRORS[argument]
        assert failed.value.request_id == failed.value.body["request_id"]


@pytest.mark.proves("llm.error")
async def test_the_official_client_asks_again_by_itself(trial, anthropic_at):
    async with trial(f"error(529)@{AT}:after") as (gate, env, _):
        async with anthropic_at(env).with_options(max_retries=1) as client:
            said = await client.messages.create(**BODY)
        assert said.stop_reason == "tool_use"
        assert [event.turn for event in gate.of(Asked)] == [0, 0]


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("argument", ERRORS)
async def test_an_error_inside_a_200(trial, argument, ask):
    async with trial(f"error({argument})@{AT}:part:6") as (gate, env, llm):
        got = await ask(env)
        assert (got.status, got.cut) == (200, False)
        assert got.kinds == [*KINDS[:6], "error"]
        error = json.loads(got.events[-1].data)
        assert (error["type"], error["error"]["type"]) == ("error", ERRORS[argument])
        assert error["request_id"] == got.headers["request-id"]
        assert gate.edges() == ["before", "after", "part:6"]
        assert await _answers(llm) == 1


@pytest.mark.proves("llm.error")
async def test_an_error_inside_a_200_is_raised_by_the_official_client(
    trial, anthropic_at
):
    async with (
        trial(f"error(529)@{AT}:part:4") as (_, env, _),
        anthropic_at(env) as client,
    ):
        seen = []
        async with client.messages.stream(**BODY) as stream:
            with pytest.raises(anthropic.APIStatusError) as failed:
                seen += [event.type async for event in stream]
            snapshot = stream.current_message_snapshot
        assert failed.value.type == "overloaded_error"
        assert (snapshot.stop_reason, len(snapshot.content)) == (None, 1)


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("edge", ["before", "after"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_reply_cut_by_its_limit_on_tokens(trial, edge, stream, anthropic_at):
    async with (
        trial(f"error(length)@{AT}:{edge}") as (gate, env, llm),
        anthropic_at(env) as client,
    ):
        if stream:
            async with client.messages.stream(**BODY) as got:
                said = await got.get_final_message()
        else:
            said = await client.messages.create(**BODY)
        assert (said.stop_reason, await _answers(llm)) == ("max_tokens", 1)
        assert said.content[0].name == "search"
        assert said.content[0].input != SCRIPT[0]["call"][0]["args"]
        assert gate.edges() == ["before", "after"][: 1 + (edge == "after")]


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("part", range(1, len(KINDS)))
async def test_a_stream_that_reaches_its_limit_ends_in_order(trial, part, ask):
    async with trial(f"error(length)@{AT}:part:{part}") as (_, env, _):
        got = await ask(env)
        assert (got.status, got.cut) == (200, False)
        assert got.kinds[:part] == KINDS[:part]
        assert got.kinds[-2:] == KINDS[-2:]
        opened = got.kinds.count("content_block_start")
        assert got.kinds.count("content_block_stop") == opened
        reason = json.loads(got.events[-2].data)["delta"]["stop_reason"]
        assert reason == ("tool_use" if part == len(KINDS) - 1 else "max_tokens")


@pytest.mark.proves("llm.delay")
@pytest.mark.parametrize("edge", ["before", "after"])
async def test_delay(trial, edge, ask):
    async with trial(f"delay(0.2)@{AT}:{edge}") as (gate, env, _):
        began = time.monotonic()
        slow = asyncio.create_task(ask(env))
        await gate.record.sink.seen("fault")
        assert (await ask(env)).kinds == KINDS
        assert not slow.done(), "others pass meanwhile"
        assert (await slow).kinds == KINDS
        assert time.monotonic() - began >= 0.2


@pytest.mark.proves("llm.tear")
@pytest.mark.parametrize("part", range(1, len(KINDS)))
async def test_tear(trial, part, ask):
    async with trial(f"tear@{AT}:part:{part}") as (gate, env, llm):
        got = await ask(env)
        assert (got.status, got.cut, got.kinds) == (200, True, KINDS[:part])
        assert gate.edges() == ["before", "after", f"part:{part}"]
        assert await _answers(llm) == 1


@pytest.mark.proves("llm.tear")
async def test_a_tear_inside_the_arguments_of_a_call(trial, ask):
    async with trial(f"tear@{AT}:part:6") as (_, env, _):
        got = await ask(env)
        sent = [json.loads(e.data)["delta"]["partial_json"] for e in got.events[3:]]
        assert tuple(sent) == ARGUMENTS[:3]
        with pytest.raises(ValueError, match="Unterminated"):
            json.loads("".join(sent))


@pytest.mark.proves("llm.tear")
async def test_the_official_client_notices_a_tear(trial, anthropic_at):
    async with (
        trial(f"tear@{AT}:part:6") as (_, env, _),
        anthropic_at(env) as client,
        client.messages.stream(**BODY) as stream,
    ):
        with pytest.raises(httpx2.TransportError):
            await stream.get_final_message()


@pytest.mark.proves("llm.tear")
async def test_half_of_a_whole_reply(trial, ask):
    async with trial(f"tear@{AT}:part:1", fresh_ids=False) as (gate, env, _):
        got = await ask(env, stream=False)
        whole = await ask(env, stream=False)
        assert (got.status, got.cut) == (200, True)
        assert whole.body.startswith(got.body)
        assert len(got.body) == len(whole.body) // 2
        assert gate.edges() == ["before", "after", "part:1", "before", "after"]


@pytest.mark.proves("llm.duplicate")
@pytest.mark.parametrize("stream", [True, False])
async def test_duplicate(trial, stream, ask):
    async with trial(f"duplicate@{AT}:before") as (gate, env, llm):
        got = await ask(env, stream=stream)
        assert (got.status, got.cut) == (200, False)
        assert await _answers(llm) == 2
        assert len(gate.of(Asked)) == 1
        assert gate.edges() == ["before", "after"]


async def test_the_same_faults_give_the_same_crossings_every_time(trial, ask):
    seen = set()
    for _ in range(5):
        async with trial(f"error(529)@{AT}:part:6", fresh_ids=False) as (gate, env, _):
            got = await ask(env)
            told = [event.address for event in gate.of(Crossed)]
            seen.add((got.body, *told))
    assert len(seen) == 1
