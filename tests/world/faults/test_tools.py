"""What each fault is on `tools`, seen by a client of the standard library."""

import asyncio
import http.client
import json
import socket
import time
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from chaoskit.model.history import Applied, Crossed, Delivered, FaultFired
from chaoskit.world.tools import Tools

AT = "0:tools.pay[o-1]#1"
ANSWER = {"result": {"status": "applied", "id": "pay[o-1]#1"}}
RETRIED = {"429", "503"}


def _post(url, tool="pay", key=None):
    """One call, on a connection of its own: the status, Retry-After and the body."""
    at = urlsplit(url)
    client = http.client.HTTPConnection(at.hostname, at.port, timeout=5)
    headers = {"Idempotency-Key": key} if key else {}
    try:
        client.request("POST", f"{at.path}/{tool}", '{"order": "o-1"}', headers)
        reply = client.getresponse()
        return reply.status, reply.headers["Retry-After"], json.load(reply)
    finally:
        client.close()


async def post(url, **more):
    return await asyncio.to_thread(_post, url, **more)


def _of(gate, kind):
    return [event for event in gate.record.events if isinstance(event, kind)]


def _edges(gate):
    return [str(event.at.edge) for event in _of(gate, Crossed)]


@pytest.fixture
def trial(make_gate, make_scenario):
    """A trial with a schedule, and the next one after it, which has no trace of it."""

    @asynccontextmanager
    async def run(schedule, killed=None, cls="blind"):
        scenario = make_scenario(tools={"pay": cls, "other": "blind"})
        gate, tools = make_gate(schedule, killed), Tools()
        await tools.start()
        try:
            await tools.reset(gate, scenario)
            url = (await tools.open(0))["CHAOSKIT_TOOLS_URL"]
            yield gate, url
            assert [event.fault for event in _of(gate, FaultFired)] == [schedule]
            clean = make_gate()
            await tools.reset(clean, scenario)
            url = (await tools.open(0))["CHAOSKIT_TOOLS_URL"]
            assert await post(url) == (200, None, ANSWER)
            assert _edges(clean) == ["before", "after"]
            assert _of(clean, FaultFired) == []
        finally:
            await tools.stop()

    return run


@pytest.mark.proves("agent.kill")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
async def test_kill(trial, edge, count):
    killed = []
    async with trial(f"kill@{AT}:{edge}", killed) as (gate, url):
        with pytest.raises(ConnectionResetError):
            await post(url)
        assert (killed, len(_of(gate, Applied))) == ([0], count)


@pytest.mark.proves("tools.refuse")
async def test_refuse(trial):
    async with trial(f"refuse@{AT}:before") as (gate, url):
        with pytest.raises(ConnectionResetError):
            await post(url)
        assert _of(gate, Applied) == []
        assert await post(url) == (200, None, ANSWER)


@pytest.mark.proves("tools.drop_reply")
async def test_drop_reply(trial):
    async with trial(f"drop_reply@{AT}:after") as (gate, url):
        with pytest.raises(ConnectionResetError):
            await post(url)
        assert len(_of(gate, Applied)) == 1
        assert (await post(url))[2]["result"]["id"] == "pay[o-1]#2"


@pytest.mark.proves("tools.error")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("status", ["429", "500", "503", "504"])
async def test_error(trial, edge, count, status):
    async with trial(f"error({status})@{AT}:{edge}") as (gate, url):
        got, wait, body = await post(url)
        assert (got, wait) == (int(status), "1" if status in RETRIED else None)
        assert set(body["error"]) == {"message", "type"}
        assert len(_of(gate, Applied)) == count
        assert (await post(url))[0] == 200


@pytest.mark.proves("tools.error")
async def test_an_error_without_an_argument_is_a_429(trial):
    async with trial(f"error@{AT}:before") as (_, url):
        assert (await post(url))[0] == 429


@pytest.mark.proves("tools.delay")
@pytest.mark.parametrize("edge", ["before", "after"])
async def test_delay(trial, edge):
    async with trial(f"delay(0.2)@{AT}:{edge}") as (gate, url):
        began = time.monotonic()
        slow = asyncio.create_task(post(url))
        await gate.record.sink.seen("fault")
        assert (await post(url, tool="other"))[0] == 200
        assert not slow.done(), "others pass meanwhile"
        assert await slow == (200, None, ANSWER)
        assert time.monotonic() - began >= 0.2


@pytest.mark.proves("tools.tear")
async def test_tear(trial):
    async with trial(f"tear@{AT}:part:1") as (gate, url):
        with pytest.raises(ConnectionResetError) as torn:
            await post(url)
        assert torn
        assert _edges(gate) == ["before", "after", "part:1"]
        assert len(_of(gate, Applied)) == 1


def _read_all(url):
    """What a raw socket is sent until the reset."""
    at, body = urlsplit(url), b'{"order":"o-1"}'
    head = f"POST {at.path}/pay HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    got = b""
    with socket.create_connection((at.hostname, at.port), timeout=5) as client:
        client.sendall(f"{head}\r\n".encode() + body)
        try:
            while data := client.recv(4096):
                got += data
            pytest.fail("the connection ended without a reset")
        except ConnectionResetError:
            pass
    return got.split(b"\r\n\r\n")


@pytest.mark.proves("tools.tear")
async def test_half_of_the_reply_gets_through(trial):
    async with trial(f"tear@{AT}:part:1") as (_, url):
        head, body = await asyncio.to_thread(_read_all, url)
        whole = json.dumps(ANSWER, separators=(",", ":")).encode()
        assert f"Content-Length: {len(whole)}".encode() in head
        assert body == whole[: len(whole) // 2]


@pytest.mark.proves("tools.duplicate")
@pytest.mark.parametrize(("cls", "answer"), [("blind", 2), ("keyed", 1)])
async def test_duplicate(trial, cls, answer):
    async with trial(f"duplicate@{AT}:before", cls=cls) as (gate, url):
        status, _, body = await post(url, key="k")
        assert (status, body["result"]["id"]) == (200, f"pay[o-1]#{answer}")
        assert [d.duplicate for d in _of(gate, Delivered)] == [False, True]
        applied = [(a.first, a.duplicate) for a in _of(gate, Applied)]
        assert applied == [(True, False), (cls == "blind", True)]
        assert _edges(gate) == ["before", "after"]
        assert len({event.message for event in _of(gate, Delivered)}) == 1
