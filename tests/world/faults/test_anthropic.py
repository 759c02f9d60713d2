"""What each fault is on `llm.messages`, seen by plain and by the official client."""

import asyncio
import http.client
import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import anthropic
import httpx2
import pytest

from chaoskit.model.history import Asked, Crossed, FaultFired
from chaoskit.wire.sse import Reader
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


@dataclass
class Got:
    """What a client saw: how it was answered, and whether the line was cut."""

    status: int
    headers: dict[str, str]
    body: bytes
    cut: bool

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self):
        return [(e.name, json.loads(e.data)) for e in Reader().feed(self.body)]

    @property
    def kinds(self):
        return [name for name, _ in self.events]


def _post(env, stream):
    """One question on a connection of its own, by the standard library."""
    at = urlsplit(env["ANTHROPIC_BASE_URL"])
    client = http.client.HTTPConnection(at.hostname, at.port, timeout=5)
    headers = {
        "x-api-key": env["ANTHROPIC_API_KEY"],
        "anthropic-version": "2026-10-21",
    }
    try:
        body = json.dumps({**BODY, "stream": stream})
        client.request("POST", f"{at.path}/v1/messages", body, headers)
        reply = client.getresponse()
        named = {name.lower(): value for name, value in reply.getheaders()}
        return Got(reply.status, named, *_read(reply))
    finally:
        client.close()


def _read(reply):
    got = b""
    try:
        while some := reply.read1():
            got += some
    except (ConnectionResetError, http.client.IncompleteRead):
        return got, True
    return got, False


async def ask(env, *, stream=True):
    return await asyncio.to_thread(_post, env, stream)


def _official(env):
    return anthropic.AsyncAnthropic(
        base_url=env["ANTHROPIC_BASE_URL"],
        api_key=env["ANTHROPIC_API_KEY"],
        max_retries=0,
        timeout=5,
        http_client=httpx2.AsyncClient(verify=False, trust_env=False),
    )


def _of(gate, kind):
    return [event for event in gate.record.events if isinstance(event, kind)]


def _edges(gate):
    return [str(event.at.edge) for event in _of(gate, Crossed)]


@pytest.fixture
def trial(make_gate, make_scenario):
    """A trial with a schedule, and the next one after it, which has no trace of it."""

    @asynccontextmanager
    async def run(schedule, killed=None, **more):
        scenario = make_scenario(SCRIPT, {"search": "read"}, **more)
        gate, llm = make_gate(schedule, killed), Llm()
        await llm.start()
        try:
            await llm.reset(gate, scenario)
            yield gate, await llm.open(0), llm
            assert [event.fault for event in _of(gate, FaultFired)] == [schedule]
            clean = make_gate()
            await llm.reset(clean, scenario)
            got = await ask(await llm.open(0))
            assert (got.status, got.cut, got.kinds) == (200, False, KINDS)
            assert (await llm.snapshot()).replies == 1
            assert _edges(clean) == ["before", "after"]
            assert _of(clean, FaultFired) == []
        finally:
            await llm.stop()

    return run


async def _answers(llm):
    return (await llm.snapshot()).replies


@pytest.mark.proves("agent.kill")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("stream", [True, False])
async def test_kill(trial, edge, count, stream):
    killed = []
    async with trial(f"kill@{AT}:{edge}", killed) as (_, env, llm):
        with pytest.raises(ConnectionResetError):
            await ask(env, stream=stream)
        assert (killed, await _answers(llm)) == ([0], count)


@pytest.mark.proves("agent.kill")
async def test_kill_inside_a_stream(trial):
    killed = []
    async with trial(f"kill@{AT}:part:5", killed) as (gate, env, _):
        got = await ask(env)
        assert (got.kinds, got.cut, killed) == (KINDS[:5], True, [0])
        assert _edges(gate) == ["before", "after", "part:5"]


@pytest.mark.proves("llm.refuse")
@pytest.mark.parametrize("stream", [True, False])
async def test_refuse(trial, stream):
    async with trial(f"refuse@{AT}:before") as (gate, env, llm):
        with pytest.raises(ConnectionResetError):
            await ask(env, stream=stream)
        assert await _answers(llm) == 0
        assert _edges(gate) == ["before"]
        assert (await ask(env, stream=stream)).status == 200


@pytest.mark.proves("llm.drop_reply")
@pytest.mark.parametrize("stream", [True, False])
async def test_drop_reply(trial, stream):
    async with trial(f"drop_reply@{AT}:after") as (gate, env, llm):
        with pytest.raises(ConnectionResetError):
            await ask(env, stream=stream)
        assert await _answers(llm) == 1
        assert _edges(gate) == ["before", "after"]
        assert (await ask(env, stream=stream)).status == 200
        assert [event.turn for event in _of(gate, Asked)] == [0, 0]


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("edge", ["before", "after"])
@pytest.mark.parametrize("argument", ERRORS)
@pytest.mark.parametrize("stream", [True, False])
async def test_error(trial, edge, argument, stream):
    async with trial(f"error({argument})@{AT}:{edge}") as (gate, env, _):
        got = await ask(env, stream=stream)
        assert (got.status, got.cut) == (int(argument), False)
        assert got.json["type"] == "error"
        assert got.json["error"]["type"] == ERRORS[argument]
        assert got.json["request_id"] == got.headers["request-id"]
        assert got.headers["x-should-retry"] == "true"
        assert got.headers.get("retry-after") == ("1" if argument == "429" else None)
        assert got.headers["content-type"].startswith("application/json")
        assert _edges(gate) == ["before", "after"][: 1 + (edge == "after")]
        assert (await ask(env, stream=stream)).status == 200


CLASSES = {
    "429": anthropic.RateLimitError,
    "500": anthropic.InternalServerError,
    "503": anthropic.InternalServerError,
    "529": anthropic.InternalServerError,
}


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("argument", ERRORS)
async def test_an_error_is_the_official_clients_own(trial, argument):
    async with (
        trial(f"error({argument})@{AT}:before") as (_, env, _),
        _official(env) as client,
    ):
        with pytest.raises(CLASSES[argument]) as failed:
            await client.messages.create(**BODY)
        assert failed.value.status_code == int(argument)
        assert failed.value.type == ERRORS[argument]
        assert failed.value.request_id == failed.value.body["request_id"]


@pytest.mark.proves("llm.error")
async def test_the_official_client_asks_again_by_itself(trial):
    async with trial(f"error(529)@{AT}:after") as (gate, env, _):
        async with _official(env).with_options(max_retries=1) as client:
            said = await client.messages.create(**BODY)
        assert said.stop_reason == "tool_use"
        assert [event.turn for event in _of(gate, Asked)] == [0, 0]


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("argument", ERRORS)
async def test_an_error_inside_a_200(trial, argument):
    async with trial(f"error({argument})@{AT}:part:6") as (gate, env, llm):
        got = await ask(env)
        assert (got.status, got.cut) == (200, False)
        assert got.kinds == [*KINDS[:6], "error"]
        error = got.events[-1][1]
        assert (error["type"], error["error"]["type"]) == ("error", ERRORS[argument])
        assert error["request_id"] == got.headers["request-id"]
        assert _edges(gate) == ["before", "after", "part:6"]
        assert await _answers(llm) == 1


@pytest.mark.proves("llm.error")
async def test_an_error_inside_a_200_is_raised_by_the_official_client(trial):
    async with (
        trial(f"error(529)@{AT}:part:4") as (_, env, _),
        _official(env) as client,
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
async def test_a_reply_cut_by_its_limit_on_tokens(trial, edge, stream):
    async with (
        trial(f"error(length)@{AT}:{edge}") as (gate, env, llm),
        _official(env) as client,
    ):
        if stream:
            async with client.messages.stream(**BODY) as got:
                said = await got.get_final_message()
        else:
            said = await client.messages.create(**BODY)
        assert (said.stop_reason, await _answers(llm)) == ("max_tokens", 1)
        assert said.content[0].name == "search"
        assert said.content[0].input != SCRIPT[0]["call"][0]["args"]
        assert _edges(gate) == ["before", "after"][: 1 + (edge == "after")]


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("part", range(1, len(KINDS)))
async def test_a_stream_that_reaches_its_limit_ends_in_order(trial, part):
    async with trial(f"error(length)@{AT}:part:{part}") as (_, env, _):
        got = await ask(env)
        assert (got.status, got.cut) == (200, False)
        assert got.kinds[:part] == KINDS[:part]
        assert got.kinds[-2:] == KINDS[-2:]
        opened = got.kinds.count("content_block_start")
        assert got.kinds.count("content_block_stop") == opened
        reason = got.events[-2][1]["delta"]["stop_reason"]
        assert reason == ("tool_use" if part == len(KINDS) - 1 else "max_tokens")


@pytest.mark.proves("llm.delay")
@pytest.mark.parametrize("edge", ["before", "after"])
async def test_delay(trial, edge):
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
async def test_tear(trial, part):
    async with trial(f"tear@{AT}:part:{part}") as (gate, env, llm):
        got = await ask(env)
        assert (got.status, got.cut, got.kinds) == (200, True, KINDS[:part])
        assert _edges(gate) == ["before", "after", f"part:{part}"]
        assert await _answers(llm) == 1


@pytest.mark.proves("llm.tear")
async def test_a_tear_inside_the_arguments_of_a_call(trial):
    async with trial(f"tear@{AT}:part:6") as (_, env, _):
        got = await ask(env)
        sent = [data["delta"]["partial_json"] for _, data in got.events[3:]]
        assert tuple(sent) == ARGUMENTS[:3]
        with pytest.raises(ValueError, match="Unterminated"):
            json.loads("".join(sent))


@pytest.mark.proves("llm.tear")
async def test_the_official_client_notices_a_tear(trial):
    async with (
        trial(f"tear@{AT}:part:6") as (_, env, _),
        _official(env) as client,
        client.messages.stream(**BODY) as stream,
    ):
        with pytest.raises(httpx2.TransportError):
            await stream.get_final_message()


@pytest.mark.proves("llm.tear")
async def test_half_of_a_whole_reply(trial):
    async with trial(f"tear@{AT}:part:1", fresh_ids=False) as (gate, env, _):
        got = await ask(env, stream=False)
        whole = await ask(env, stream=False)
        assert (got.status, got.cut) == (200, True)
        assert whole.body.startswith(got.body)
        assert len(got.body) == len(whole.body) // 2
        assert _edges(gate) == ["before", "after", "part:1", "before", "after"]


@pytest.mark.proves("llm.duplicate")
@pytest.mark.parametrize("stream", [True, False])
async def test_duplicate(trial, stream):
    async with trial(f"duplicate@{AT}:before") as (gate, env, llm):
        got = await ask(env, stream=stream)
        assert (got.status, got.cut) == (200, False)
        assert await _answers(llm) == 2
        assert len(_of(gate, Asked)) == 1
        assert _edges(gate) == ["before", "after"]


async def test_the_same_faults_give_the_same_crossings_every_time(trial):
    seen = set()
    for _ in range(5):
        async with trial(f"error(529)@{AT}:part:6", fresh_ids=False) as (gate, env, _):
            got = await ask(env)
            told = [event.address for event in _of(gate, Crossed)]
            seen.add((got.body, *told))
    assert len(seen) == 1
