"""What each fault is on `llm.chat` and `llm.responses`, streamed and whole."""

import asyncio
import http.client
import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
import openai
import pytest

from chaoskit.model.history import Asked, Crossed, FaultFired
from chaoskit.wire.sse import Reader
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
        return list(Reader().feed(self.body))


def _post(env, op, stream):
    """One question on a connection of its own, by the standard library."""
    at = urlsplit(env["OPENAI_BASE_URL"])
    client = http.client.HTTPConnection(at.hostname, at.port, timeout=5)
    headers = {"Authorization": f"Bearer {env['OPENAI_API_KEY']}"}
    try:
        body = json.dumps({**BODIES[op], "stream": stream})
        client.request("POST", f"{at.path}/{PATHS[op]}", body, headers)
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


async def ask(env, op, stream):
    return await asyncio.to_thread(_post, env, op, stream)


def _official(env):
    return openai.AsyncOpenAI(
        base_url=env["OPENAI_BASE_URL"],
        api_key=env["OPENAI_API_KEY"],
        max_retries=0,
        timeout=5,
        http_client=httpx2.AsyncClient(verify=False, trust_env=False),
    )


def _of(gate, kind):
    return [event for event in gate.record.events if isinstance(event, kind)]


def _edges(gate):
    return [str(event.at.edge) for event in _of(gate, Crossed)]


def _is_whole(got, op, stream):
    if not stream:
        return (got.status, got.cut, got.json.get("error")) == (200, False, None)
    return (got.status, got.cut, len(got.events)) == (200, False, PIECES[op])


@pytest.fixture
def trial(make_gate, make_scenario):
    """A trial with a schedule, and the next one after it, which has no trace of it."""

    @asynccontextmanager
    async def run(op, fault, killed=None, **more):
        kind, _, edge = fault.partition("@")
        schedule = f"{kind}@0:llm.{op}#1:{edge}"
        scenario = make_scenario(SCRIPT, {"search": "read"}, **more)
        gate, llm = make_gate(schedule, killed), Llm()
        await llm.start()
        try:
            await llm.reset(gate, scenario)
            yield gate, await llm.open(0), llm
            assert [event.fault for event in _of(gate, FaultFired)] == [schedule]
            clean = make_gate()
            await llm.reset(clean, scenario)
            assert _is_whole(await ask(await llm.open(0), op, True), op, True)
            assert (await llm.snapshot()).replies == 1
            assert _edges(clean) == ["before", "after"]
            assert _of(clean, FaultFired) == []
        finally:
            await llm.stop()

    return run


async def _replies(llm):
    return (await llm.snapshot()).replies


@pytest.mark.proves("agent.kill")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
@EACH_WAY
async def test_kill(trial, op, stream, edge, count):
    killed = []
    async with trial(op, f"kill@{edge}", killed) as (_, env, llm):
        with pytest.raises(ConnectionResetError):
            await ask(env, op, stream)
        assert (killed, await _replies(llm)) == ([0], count)


@pytest.mark.proves("agent.kill")
@pytest.mark.parametrize("op", BODIES)
async def test_kill_inside_a_stream(trial, op):
    killed = []
    async with trial(op, "kill@part:4", killed) as (_, env, _):
        got = await ask(env, op, True)
        assert (len(got.events), got.cut, killed) == (4, True, [0])


@pytest.mark.proves("llm.refuse")
@EACH_WAY
async def test_refuse(trial, op, stream):
    async with trial(op, "refuse@before") as (gate, env, llm):
        with pytest.raises(ConnectionResetError):
            await ask(env, op, stream)
        assert (await _replies(llm), _edges(gate)) == (0, ["before"])
        assert _is_whole(await ask(env, op, stream), op, stream)


@pytest.mark.proves("llm.drop_reply")
@EACH_WAY
async def test_drop_reply(trial, op, stream):
    async with trial(op, "drop_reply@after") as (gate, env, llm):
        with pytest.raises(ConnectionResetError):
            await ask(env, op, stream)
        assert (await _replies(llm), _edges(gate)) == (1, ["before", "after"])
        assert _is_whole(await ask(env, op, stream), op, stream)
        assert [event.turn for event in _of(gate, Asked)] == [0, 0]


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("edge", ["before", "after"])
@pytest.mark.parametrize("argument", CODES)
@EACH_WAY
async def test_error(trial, op, stream, edge, argument):
    async with trial(op, f"error({argument})@{edge}") as (gate, env, _):
        got = await ask(env, op, stream)
        assert (got.status, got.cut) == (int(argument), False)
        error = got.json["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert error["code"] == CODES[argument]
        wait = "1" if argument == "429" else None
        assert got.headers.get("retry-after") == wait
        assert got.headers["x-request-id"].startswith("req_")
        assert _edges(gate) == ["before", "after"][: 1 + (edge == "after")]
        assert _is_whole(await ask(env, op, stream), op, stream)


CLASSES = {
    "429": openai.RateLimitError,
    "500": openai.InternalServerError,
    "503": openai.InternalServerError,
    "529": openai.InternalServerError,
}


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("argument", CODES)
async def test_an_error_is_the_official_clients_own(trial, argument):
    async with (
        trial("chat", f"error({argument})@before") as (_, env, _),
        _official(env) as client,
    ):
        with pytest.raises(CLASSES[argument]) as failed:
            await client.chat.completions.create(**BODIES["chat"])
        assert failed.value.status_code == int(argument)
        assert failed.value.code == CODES[argument]
        assert failed.value.request_id.startswith("req_")


@pytest.mark.proves("llm.error")
async def test_the_official_client_asks_again_by_itself(trial):
    async with trial("responses", "error(503)@after") as (gate, env, _):
        async with _official(env).with_options(max_retries=1) as client:
            said = await client.responses.create(**BODIES["responses"])
        assert said.output[0].name == "search"
        assert [event.turn for event in _of(gate, Asked)] == [0, 0]


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("argument", CODES)
@pytest.mark.parametrize("op", BODIES)
async def test_an_error_inside_a_200(trial, op, argument):
    async with trial(op, f"error({argument})@part:4") as (gate, env, llm):
        got = await ask(env, op, True)
        assert (got.status, got.cut) == (200, False)
        extra = [json.loads(event.data) for event in got.events[4:]]
        assert extra[0]["error"]["code"] == CODES[argument]
        kinds = [event.name for event in got.events[4:]]
        assert kinds == ([""] if op == "chat" else ["error", "response.failed"])
        assert _edges(gate) == ["before", "after", "part:4"]
        assert await _replies(llm) == 1


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("edge", ["before", "after", "part:4"])
@pytest.mark.parametrize("op", BODIES)
async def test_a_reply_cut_by_its_limit_is_no_error(trial, op, edge):
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
async def test_a_whole_reply_cut_by_its_limit(trial, op):
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
    trial, monkeypatch, argument, status
):
    async with trial("chat", f"error({argument})@after") as (gate, env, _):
        with monkeypatch.context() as patch:
            patch.setitem(BODIES, "chat", {"model": "m", "messages": []})
            assert (await ask(env, "chat", True)).status == status
        assert _of(gate, Asked)[0].problem is not None


@pytest.mark.proves("llm.delay")
@pytest.mark.parametrize("edge", ["before", "after"])
@EACH_WAY
async def test_delay(trial, op, stream, edge):
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
async def test_tear(trial, op, part):
    async with trial(op, f"tear@part:{part}") as (gate, env, llm):
        got = await ask(env, op, True)
        assert (got.status, got.cut, len(got.events)) == (200, True, part)
        assert _edges(gate) == ["before", "after", f"part:{part}"]
        assert await _replies(llm) == 1


@pytest.mark.proves("llm.tear")
async def test_a_tear_inside_the_arguments_of_a_call(trial):
    async with trial("chat", "tear@part:4") as (_, env, _):
        got = await ask(env, "chat", True)
        deltas = [json.loads(e.data)["choices"][0]["delta"] for e in got.events[1:]]
        calls = [delta["tool_calls"][0]["function"] for delta in deltas]
        assert calls[0]["name"] == "search"
        with pytest.raises(json.JSONDecodeError):
            json.loads("".join(call["arguments"] for call in calls))


@pytest.mark.proves("llm.tear")
@pytest.mark.parametrize("op", BODIES)
async def test_the_official_client_notices_a_tear(trial, op):
    async with trial(op, "tear@part:5") as (_, env, _), _official(env) as client:
        asked = client.chat.completions if op == "chat" else client.responses
        with pytest.raises((openai.APIConnectionError, httpx2.TransportError)):
            async for _ in await asked.create(**BODIES[op], stream=True):
                pass


@pytest.mark.proves("llm.tear")
@pytest.mark.parametrize("op", BODIES)
async def test_half_of_a_whole_reply(trial, op):
    async with trial(op, "tear@part:1", fresh_ids=False) as (gate, env, _):
        got = await ask(env, op, False)
        whole = await ask(env, op, False)
        assert (got.status, got.cut) == (200, True)
        assert whole.body.startswith(got.body)
        assert len(got.body) == len(whole.body) // 2
        assert _edges(gate) == ["before", "after", "part:1", "before", "after"]


@pytest.mark.proves("llm.error")
@pytest.mark.parametrize("op", BODIES)
async def test_an_error_inside_a_whole_reply_cuts_it(trial, op):
    async with trial(op, "error(500)@part:1") as (gate, env, _):
        got = await ask(env, op, False)
        assert (got.status, got.cut) == (200, True)
        assert _edges(gate) == ["before", "after", "part:1"]


@pytest.mark.proves("llm.duplicate")
@EACH_WAY
async def test_duplicate(trial, op, stream):
    async with trial(op, "duplicate@before") as (gate, env, llm):
        assert _is_whole(await ask(env, op, stream), op, stream)
        assert await _replies(llm) == 2
        assert len(_of(gate, Asked)) == 1
        assert _edges(gate) == ["before", "after"]


@pytest.mark.parametrize("op", BODIES)
async def test_the_same_faults_give_the_same_bytes_every_time(trial, op):
    seen = set()
    for _ in range(100):
        async with trial(op, "error(503)@part:4") as (gate, env, _):
            got = await ask(env, op, True)
            again = await ask(env, op, True)
            crossed = [event.address for event in _of(gate, Crossed)]
            seen.add((got.body, again.body, *crossed))
    assert len(seen) == 1
