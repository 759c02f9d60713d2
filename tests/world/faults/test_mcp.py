"""What each fault is on `mcp`, seen by a client of the standard library."""

import asyncio
import http.client
import json
import time
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from chaoskit.model.history import Applied, Crossed, Delivered, FaultFired
from chaoskit.world.mcp import Mcp

AT = "0:mcp.pay[o-1]#1"
ACCEPT = "application/json, text/event-stream"
HEADERS = {"Accept": ACCEPT, "Content-Type": "application/json"}


def _post(url, tool="pay", **meta):
    """One call, on a connection of its own: the status, Retry-After and the body."""
    at = urlsplit(url)
    params = {"name": tool, "arguments": {"order": "o-1"}, "_meta": meta}
    said = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    client = http.client.HTTPConnection(at.hostname, at.port, timeout=5)
    try:
        client.request("POST", at.path, json.dumps(said), HEADERS)
        reply = client.getresponse()
        body = b""
        while data := reply.read1():
            body += data
        return reply.status, reply.headers["Retry-After"], body.decode()
    except (ConnectionResetError, http.client.IncompleteRead) as cut:
        raise ConnectionResetError(body if "body" in locals() else b"") from cut
    finally:
        client.close()


async def post(url, *tool, **meta):
    return await asyncio.to_thread(_post, url, *tool, **meta)


def _of(gate, kind):
    return [event for event in gate.record.events if isinstance(event, kind)]


def _edges(gate):
    return [str(event.at.edge) for event in _of(gate, Crossed)]


def _is_done(got, number=1):
    status, _, body = got
    result = json.loads(body)["result"]
    receipt = result["structuredContent"]["result"]["id"]
    return (status, receipt, result["isError"]) == (200, f"pay[o-1]#{number}", False)


@pytest.fixture
def trial(make_gate, make_scenario):
    """A trial with a schedule, and the next one after it, which has no trace of it."""

    @asynccontextmanager
    async def run(schedule, killed=None, cls="blind"):
        scenario = make_scenario(tools={"pay": cls, "other": "blind"})
        gate, server = make_gate(schedule, killed), Mcp()
        await server.start()
        try:
            await server.reset(gate, scenario)
            url = (await server.open(0))["CHAOSKIT_MCP_URL"]
            yield gate, url
            assert [event.fault for event in _of(gate, FaultFired)] == [schedule]
            clean = make_gate()
            await server.reset(clean, scenario)
            url = (await server.open(0))["CHAOSKIT_MCP_URL"]
            assert _is_done(await post(url))
            assert _edges(clean) == ["before", "after"]
            assert _of(clean, FaultFired) == []
        finally:
            await server.stop()

    return run


@pytest.mark.proves("agent.kill")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
async def test_kill(trial, edge, count):
    killed = []
    async with trial(f"kill@{AT}:{edge}", killed) as (gate, url):
        with pytest.raises(ConnectionResetError):
            await post(url)
        assert (killed, len(_of(gate, Applied))) == ([0], count)


@pytest.mark.proves("mcp.refuse")
async def test_refuse(trial):
    async with trial(f"refuse@{AT}:before") as (gate, url):
        with pytest.raises(ConnectionResetError):
            await post(url)
        assert _of(gate, Applied) == []
        assert _is_done(await post(url))


@pytest.mark.proves("mcp.drop_reply")
async def test_drop_reply(trial):
    async with trial(f"drop_reply@{AT}:after") as (gate, url):
        with pytest.raises(ConnectionResetError):
            await post(url)
        assert len(_of(gate, Applied)) == 1
        assert _is_done(await post(url), 2)


@pytest.mark.proves("mcp.error")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("kind", ["-32603", "isError", "429", "503"])
async def test_error(trial, edge, count, kind):
    async with trial(f"error({kind})@{AT}:{edge}") as (gate, url):
        status, wait, body = await post(url)
        said = json.loads(body)
        if kind == "-32603":
            assert (status, said["error"]["code"], said["id"]) == (200, -32603, 7)
        elif kind == "isError":
            assert (status, said["result"]["isError"], said["id"]) == (200, True, 7)
            assert "structuredContent" not in said["result"]
        else:
            assert (status, wait) == (int(kind), "1")
            assert "jsonrpc" not in said
        assert len(_of(gate, Applied)) == count
        assert _is_done(await post(url), count + 1)


@pytest.mark.proves("mcp.delay")
@pytest.mark.parametrize("edge", ["before", "after"])
async def test_delay(trial, edge):
    async with trial(f"delay(0.2)@{AT}:{edge}") as (gate, url):
        began = time.monotonic()
        slow = asyncio.create_task(post(url))
        await gate.record.sink.seen("fault")
        assert (await post(url, "other"))[0] == 200
        assert not slow.done(), "others pass meanwhile"
        assert _is_done(await slow)
        assert time.monotonic() - began >= 0.2


@pytest.mark.proves("mcp.tear")
async def test_tear(trial):
    async with trial(f"tear@{AT}:part:1") as (gate, url):
        with pytest.raises(ConnectionResetError) as torn:
            await post(url)
        (got,) = torn.value.args
        assert got.startswith(b'{"jsonrpc":"2.0","id":7,"result":')
        assert b"}}" not in got[-2:]
        assert _edges(gate) == ["before", "after", "part:1"]
        assert len(_of(gate, Applied)) == 1


@pytest.mark.proves("mcp.tear", "agent.kill")
@pytest.mark.parametrize("kind", ["tear", "kill"])
async def test_a_stream_is_cut_between_its_events(trial, kind):
    async with trial(f"{kind}@{AT}:part:1") as (gate, url):
        with pytest.raises(ConnectionResetError) as torn:
            await post(url, progressToken="p")
        (got,) = torn.value.args
        event, data, *rest = got.decode().splitlines()
        assert (event, rest) == ("event: message", [""])
        notice = json.loads(data.removeprefix("data: "))
        assert notice["method"] == "notifications/progress"
        assert [event.pieces for event in _of(gate, Crossed)] == [2, 2, None]


@pytest.mark.proves("mcp.duplicate")
@pytest.mark.parametrize(("cls", "answer"), [("blind", 2), ("keyed", 1)])
async def test_duplicate(trial, cls, answer):
    async with trial(f"duplicate@{AT}:before", cls=cls) as (gate, url):
        assert _is_done(await post(url, idempotency_key="k"), answer)
        assert [d.duplicate for d in _of(gate, Delivered)] == [False, True]
        applied = [(a.first, a.duplicate) for a in _of(gate, Applied)]
        assert applied == [(True, False), (cls == "blind", True)]
