"""What each fault is on `mcp`, seen by a client of the standard library."""

import asyncio
import json
import time
from contextlib import asynccontextmanager

import pytest

from chaoskit.model.history import Applied, Crossed, Delivered
from chaoskit.world.mcp import Mcp

AT = "0:mcp.pay[o-1]#1"
ACCEPT = "application/json, text/event-stream"
HEADERS = {"Accept": ACCEPT, "Content-Type": "application/json"}


@pytest.fixture
def call(post):
    """Make one call: the status, Retry-After and the body."""

    async def call(url, tool="pay", **meta):
        params = {"name": tool, "arguments": {"order": "o-1"}, "_meta": meta}
        said = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
        got = await post(url, said, HEADERS)
        if got.cut:
            raise ConnectionResetError(got.body)
        return got.status, got.headers.get("retry-after"), got.body

    return call


def _is_done(got, number=1):
    status, _, body = got
    result = json.loads(body)["result"]
    receipt = result["structuredContent"]["result"]["id"]
    return (status, receipt, result["isError"]) == (200, f"pay[o-1]#{number}", False)


@pytest.fixture
def trial(faulted, make_scenario, call):
    async def clean(env):
        assert _is_done(await call(env["CHAOSKIT_MCP_URL"]))

    @asynccontextmanager
    async def run(schedule, killed=None, cls="blind"):
        scenario = make_scenario(tools={"pay": cls, "other": "blind"})
        async with faulted(Mcp(), scenario, schedule, clean, killed) as (gate, env):
            yield gate, env["CHAOSKIT_MCP_URL"]

    return run


@pytest.mark.proves("agent.kill")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
async def test_kill(trial, edge, count, call):
    killed = []
    async with trial(f"kill@{AT}:{edge}", killed) as (gate, url):
        with pytest.raises(ConnectionResetError):
            await call(url)
        assert (killed, len(gate.of(Applied))) == ([0], count)


@pytest.mark.proves("mcp.refuse")
async def test_refuse(trial, call):
    async with trial(f"refuse@{AT}:before") as (gate, url):
        with pytest.raises(ConnectionResetError):
            await call(url)
        assert gate.of(Applied) == []
        assert _is_done(await call(url))


@pytest.mark.proves("mcp.drop_reply")
async def test_drop_reply(trial, call):
    async with trial(f"drop_reply@{AT}:after") as (gate, url):
        with pytest.raises(ConnectionResetError):
            await call(url)
        assert len(gate.of(Applied)) == 1
        assert _is_done(await call(url), 2)


@pytest.mark.proves("mcp.error")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("kind", ["-32603", "isError", "429", "503"])
async def test_error(trial, edge, count, kind, call):
    async with trial(f"error({kind})@{AT}:{edge}") as (gate, url):
        status, wait, body = await call(url)
        said = json.loads(body)
        if kind == "-32603":
            assert (status, said["error"]["code"], said["id"]) == (200, -32603, 7)
        elif kind == "isError":
            assert (status, said["result"]["isError"], said["id"]) == (200, True, 7)
            assert "structuredContent" not in said["result"]
        else:
            assert (status, wait) == (int(kind), "1")
            assert "jsonrpc" not in said
        assert len(gate.of(Applied)) == count
        assert _is_done(await call(url), count + 1)


@pytest.mark.proves("mcp.delay")
@pytest.mark.parametrize("edge", ["before", "after"])
async def test_delay(trial, edge, call):
    async with trial(f"delay(0.2)@{AT}:{edge}") as (gate, url):
        began = time.monotonic()
        slow = asyncio.create_task(call(url))
        await gate.record.sink.seen("fault")
        assert (await call(url, "other"))[0] == 200
        assert not slow.done(), "others pass meanwhile"
        assert _is_done(await slow)
        assert time.monotonic() - began >= 0.2


@pytest.mark.proves("mcp.tear")
async def test_tear(trial, call):
    async with trial(f"tear@{AT}:part:1") as (gate, url):
        with pytest.raises(ConnectionResetError) as torn:
            await call(url)
        (got,) = torn.value.args
        assert got.startswith(b'{"jsonrpc":"2.0","id":7,"result":')
        assert b"}}" not in got[-2:]
        assert gate.edges() == ["before", "after", "part:1"]
        assert len(gate.of(Applied)) == 1


@pytest.mark.proves("mcp.tear", "agent.kill")
@pytest.mark.parametrize("kind", ["tear", "kill"])
async def test_a_stream_is_cut_between_its_events(trial, kind, call):
    async with trial(f"{kind}@{AT}:part:1") as (gate, url):
        with pytest.raises(ConnectionResetError) as torn:
            await call(url, progressToken="p")
        (got,) = torn.value.args
        event, data, *rest = got.decode().splitlines()
        assert (event, rest) == ("event: message", [""])
        notice = json.loads(data.removeprefix("data: "))
        assert notice["method"] == "notifications/progress"
        assert [event.pieces for event in gate.of(Crossed)] == [2, 2, None]


@pytest.mark.proves("mcp.duplicate")
@pytest.mark.parametrize(("cls", "answer"), [("blind", 2), ("keyed", 1)])
async def test_duplicate(trial, cls, answer, call):
    async with trial(f"duplicate@{AT}:before", cls=cls) as (gate, url):
        assert _is_done(await call(url, idempotency_key="k"), answer)
        assert [d.duplicate for d in gate.of(Delivered)] == [False, True]
        applied = [(a.first, a.duplicate) for a in gate.of(Applied)]
        assert applied == [(True, False), (cls == "blind", True)]
