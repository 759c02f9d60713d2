"""What each fault is on `llm.chat` and `llm.responses`, streamed and whole."""

import asyncio
import json
import time
from contextlib import asynccontextmanager

import httpx2
import openai
import pytest

from chaoskit.model.history import Asked, Crossed
from chaoskit.world.llm import Llm

GOAL = "Book a flight to NYC"
BODIES = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": GOAL}]},
    "responses": {"model": "m", "input": GOAL},
}
PATHS = {"chat": "chat/completions", "responses": "responses"}
PIECES = {"chat": 7, "responses": 9}
"""Role, call and three pieces of arguments, why it ended, DONE; or created, begun,
item, three pieces, done, item done, completed."""
SCRIPT = [{"call": [{"tool": "search", "args": {"to": "NYC"}}]}, {"say": "Done."}]
CODES = {
    "429": "rate_limit_exceeded",
    "500": "server_error",
    "503": "server_is_overloaded",
    "529": "server_is_overloaded",
}
EACH_WAY = pytest.mark.parametrize(
    ("op", "stream"),
    [(op, stream) for op in BODIES for stream in (False, True)],
)


def _is_whole(got, op, stream):
    if not stream:
        return (got.status, got.cut, got.json.get("error")) == (200, False, None)
    return (got.status, got.cut, len(got.events)) == (200, False, PIECES[op])


@pytest.fixture
def ask(post):
    """Ask one question, on a connection of its own."""

    async def ask(env, op, stream):
        headers = {"Authorization": f"Bearer {env['OPENAI_API_KEY']}"}
        url = f"{env['OPENAI_BASE_URL']}/{PATHS[op]}"
        return await post(url, {**BODIES[op], "stream": stream}, headers)

    return ask


@pytest.fixture
def trial(faulted, make_scenario, ask):
    @asynccontextmanager
    async def run(op, fault, killed=None, **more):
        async def clean(env):
            assert _is_whole(await ask(env, op, True), op, True)
            assert await _replies(llm) == 1

        kind, _, edge = fault.partition("@")
        schedule = f"{kind}@0:llm.{op}#1:{edge}"
        scenario, llm = make_scenario(SCRIPT, {"search": "read"}, **more), Llm()
        async with faulted(llm, scenario, schedule, clean, killed) as (gate, env):
            yield gate, env, llm

    return run


async def _replies(llm):
    return (await llm.snapshot()).replies


@pytest.mark.proves("agent.kill")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
@EACH_WAY
async def test_kill(trial, op, stream, edge, count, ask):
    killed = []
    async with trial(op, f"kill@{edge}", killed) as (_, env, llm):
        with pytest.raises(ConnectionResetError):
            await ask(env, op, stream)
        assert (killed, await _replies(llm)) == ([0], count)


@pytest.mark.proves("agent.kill")
@pytest.mark.parametrize("op", BODIES)
async def test_kill_inside_a_stream(trial, op, ask):
    killed = []
    async with trial(op, "kill@part:4", killed) as (_, env, _):
        got = await ask(env, op, True)
        assert (len(got.events), got.cut, killed) == (4, True, [0])


@pytest.mark.proves("llm.refuse")
@EACH_WAY
async def test_refuse(trial, op, stream, ask):
    async with trial(op, "refuse@before") as (gate, env, llm):
        with pytest.raises(ConnectionResetError):
            await ask(env, op, stream)
        assert (await _replies(llm), gate.edges()) == (0, ["before"])
        assert _is_whole(await ask(env, op, stream), op, stream)


@pytest.mark.proves("llm.drop_reply")
@EACH_WAY
async def test_drop_reply(trial, op, stream, ask):
    async with trial(op, "drop_reply@after") as (gate, env, llm):
        with pytest.raises(ConnectionResetError):
            await ask(env, op, stream)
        assert (await _replies(llm), gate.edges()) == (1, ["before", "after"])
        assert _is_whole(await ask(env, op, stream), op, stream)
        assert [event.turn for event in gate.of(Asked)] == [0, 0]


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("edge", ["before", "after"])
@pytest.mark.parametrize("argument", CODES)
@EACH_WAY
async def test_error(trial, op, stream, edge, argument, ask):
    async with trial(op, f"error({argument})@{edge}") as (gate, env, _):
        got = await ask(env, op, stream)
        assert (got.status, got.cut) == (int(argument), False)
        error = got.json["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert error["code"] == CODES[argument]
        wait = "1" if argument == "429" else None
        assert got.headers.get("retry-after") == wait
        assert got.headers["x-request-id"].startswith("req_")
        assert gate.edges() == ["before", "after"][: 1 + (edge == "after")]
        assert _is_whole(await ask(env, op, stream), op, stream)


CLASSES = {
    "429": openai.RateLimitError,
    "500": openai.InternalServerError,
    "503": openai.InternalServerError,
    "529": openai.InternalServerError,
}


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("argument", CODES)
async def test_an_error_is_the_official_clients_own(trial, argument, openai_at):
    async with (
        trial("chat", f"error({argument})@before") as (_, env, _),
        openai_at(env) as client,
    ):
        with pytest.raises(CLASSES[argument]) as failed:
            await client.chat.completions.create(**BODIES["chat"])
        assert failed.value.status_code == int(argument)
        assert failed.value.code == CODES[argument]
        assert failed.value.request_id.startswith("req_")


@pytest.mark.proves("llm.error")
async def test_the_official_client_asks_again_by_itself(trial, openai_at):
    async with trial("responses", "error(503)@after") as (gate, env, _):
        async with openai_at(env).with_options(max_retries=1) as client:
            said = await client.responses.create(**BODIES["responses"])
        assert said.output[0].name == "search"
        assert [event.turn for event in gate.of(Asked)] == [0, 0]


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("argument", CODES)
@pytest.mark.parametrize("op", BODIES)
async def test_an_error_inside_a_200(trial, op, argument, ask):
    async with trial(op, f"error({argument})@part:4") as (gate, env, llm):
        got = await ask(env, op, True)
        assert (got.status, got.cut) == (200, False)
        extra = [json.loads(event.data) for event in got.events[4:]]
        assert extra[0]["error"]["code"] == CODES[argument]
        kinds = [event.name for event in got.events[4:]]
        assert kinds == ([""] if op == "chat" else ["error", "response.failed"])
        assert gate.edges() == ["before", "after", "part:4"]
        assert await _replies(llm) == 1


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("edge", ["before", "after", "part:4"])
@pytest.mark.parametrize("op", BODIES)
async def test_a_reply_cut_by_its_limit_is_no_error(trial, op, edge, ask):
    async with trial(op, f"error(length)@{edge}") as (_, env, llm):
        got = await ask(env, op, True)
        assert (got.status, got.cut) == (200, False)
        told = got.body.decode()
        wanted = '"finish_reason":"length"', "response.incomplete"
        assert wanted[op == "responses"] in told
        assert '"error":{' not in told
        assert await _replies(llm) == 1


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("op", BODIES)
async def test_a_whole_reply_cut_by_its_limit(trial, op, ask):
    async with trial(op, "error(length)@after") as (_, env, _):
        got = await ask(env, op, False)
        assert got.status == 200
        if op == "chat":
            (choice,) = got.json["choices"]
            assert choice["finish_reason"] == "length"
            cut = choice["message"]["tool_calls"][0]["function"]["arguments"]
        else:
            assert got.json["incomplete_details"] == {"reason": "max_output_tokens"}
            cut = got.json["output"][0]["arguments"]
        assert '{"to":"NYC"}'.startswith(cut)
        assert cut != '{"to":"NYC"}'


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize(("argument", "status"), [("length", 400), ("503", 503)])
async def test_a_refusal_has_no_length_but_can_be_lost_to_an_error(
    trial, monkeypatch, argument, status, ask
):
    async with trial("chat", f"error({argument})@after") as (gate, env, _):
        with monkeypatch.context() as patch:
            patch.setitem(BODIES, "chat", {"model": "m", "messages": []})
            assert (await ask(env, "chat", True)).status == status
        assert gate.of(Asked)[0].problem is not None


@pytest.mark.proves("llm.delay")
@pytest.mark.parametrize("edge", ["before", "after"])
@EACH_WAY
async def test_delay(trial, op, stream, edge, ask):
    async with trial(op, f"delay(0.2)@{edge}") as (gate, env, _):
        began = time.monotonic()
        slow = asyncio.create_task(ask(env, op, stream))
        await gate.record.sink.seen("fault")
        assert _is_whole(await ask(env, op, stream), op, stream)
        assert not slow.done(), "others pass meanwhile"
        assert _is_whole(await slow, op, stream)
        assert time.monotonic() - began >= 0.2


@pytest.mark.proves("llm.tear")
@pytest.mark.parametrize(
    ("op", "part"), [(op, part) for op in BODIES for part in range(1, PIECES[op])]
)
async def test_tear(trial, op, part, ask):
    async with trial(op, f"tear@part:{part}") as (gate, env, llm):
        got = await ask(env, op, True)
        assert (got.status, got.cut, len(got.events)) == (200, True, part)
        assert gate.edges() == ["before", "after", f"part:{part}"]
        assert await _replies(llm) == 1


@pytest.mark.proves("llm.tear")
async def test_a_tear_inside_the_arguments_of_a_call(trial, ask):
    async with trial("chat", "tear@part:4") as (_, env, _):
        got = await ask(env, "chat", True)
        deltas = [json.loads(e.data)["choices"][0]["delta"] for e in got.events[1:]]
        calls = [delta["tool_calls"][0]["function"] for delta in deltas]
        assert calls[0]["name"] == "search"
        with pytest.raises(json.JSONDecodeError):
            json.loads("".join(call["arguments"] for call in calls))


@pytest.mark.proves("llm.tear")
@pytest.mark.parametrize("op", BODIES)
async def test_the_official_client_notices_a_tear(trial, op, openai_at):
    async with trial(op, "tear@part:5") as (_, env, _), openai_at(env) as client:
        asked = client.chat.completions if op == "chat" else client.responses
        with pytest.raises((openai.APIConnectionError, httpx2.TransportError)):
            async for _ in await asked.create(**BODIES[op], stream=True):
                pass


@pytest.mark.proves("llm.tear")
@pytest.mark.parametrize("op", BODIES)
async def test_half_of_a_whole_reply(trial, op, ask):
    async with trial(op, "tear@part:1", fresh_ids=False) as (gate, env, _):
        got = await ask(env, op, False)
        whole = await ask(env, op, False)
        assert (got.status, got.cut) == (200, True)
        assert whole.body.startswith(got.body)
        assert len(got.body) == len(whole.body) // 2
        assert gate.edges() == ["before", "after", "part:1", "before", "after"]


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("op", BODIES)
async def test_an_error_inside_a_whole_reply_cuts_it(trial, op, ask):
    async with trial(op, "error(500)@part:1") as (gate, env, _):
        got = await ask(env, op, False)
        assert (got.status, got.cut) == (200, True)
        assert gate.edges() == ["before", "after", "part:1"]


@pytest.mark.proves("llm.duplicate")
@EACH_WAY
async def test_duplicate(trial, op, stream, ask):
    async with trial(op, "duplicate@before") as (gate, env, llm):
        assert _is_whole(await ask(env, op, stream), op, stream)
        assert await _replies(llm) == 2
        assert len(gate.of(Asked)) == 1
        assert gate.edges() == ["before", "after"]


@pytest.mark.parametrize("op", BODIES)
async def test_the_same_faults_give_the_same_bytes_every_time(trial, op, ask):
    seen = set()
    for _ in range(100):
        async with trial(op, "error(503)@part:4") as (gate, env, _):
            got = await ask(env, op, True)
            again = await ask(env, op, True)
            crossed = [event.address for event in gate.of(Crossed)]
            seen.add((got.body, again.body, *crossed))
    assert len(seen) == 1
