"""What each fault is on `tools`, seen by a client of the standard library."""

import asyncio
import json
import socket
import time
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from chaoskit.model.history import Applied, Delivered
from chaoskit.world.tools import Tools

AT = "0:tools.pay[o-1]#1"
ANSWER = {"result": {"status": "applied", "id": "pay[o-1]#1"}}
RETRIED = {"429", "503"}


@pytest.fixture
def call(post):
    """Make one call: the status, Retry-After and the body."""

    async def call(url, tool="pay", key=None):
        headers = {"Idempotency-Key": key} if key else {}
        got = await post(f"{url}/{tool}", {"order": "o-1"}, headers)
        if got.cut:
            raise ConnectionResetError
        return got.status, got.headers.get("retry-after"), got.json

    return call


@pytest.fixture
def trial(faulted, make_scenario, call):
    async def clean(env):
        assert await call(env["CHAOSKIT_TOOLS_URL"]) == (200, None, ANSWER)

    @asynccontextmanager
    async def run(schedule, killed=None, cls="blind"):
        scenario = make_scenario(tools={"pay": cls, "other": "blind"})
        async with faulted(Tools(), scenario, schedule, clean, killed) as (gate, env):
            yield gate, env["CHAOSKIT_TOOLS_URL"]

    return run


@pytest.mark.proves("agent.kill")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
async def test_kill(trial, edge, count, call):
    killed = []
    async with trial(f"kill@{AT}:{edge}", killed) as (gate, url):
        with pytest.raises(ConnectionResetError):
            await call(url)
        assert (killed, len(gate.of(Applied))) == ([0], count)


@pytest.mark.proves("tools.refuse")
async def test_refuse(trial, call):
    async with trial(f"refuse@{AT}:before") as (gate, url):
        with pytest.raises(ConnectionResetError):
            await call(url)
        assert gate.of(Applied) == []
        assert await call(url) == (200, None, ANSWER)


@pytest.mark.proves("tools.drop_reply")
async def test_drop_reply(trial, call):
    async with trial(f"drop_reply@{AT}:after") as (gate, url):
        with pytest.raises(ConnectionResetError):
            await call(url)
        assert len(gate.of(Applied)) == 1
        assert (await call(url))[2]["result"]["id"] == "pay[o-1]#2"


@pytest.mark.proves("tools.error")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("status", ["429", "500", "503", "504"])
async def test_error(trial, edge, count, status, call):
    async with trial(f"error({status})@{AT}:{edge}") as (gate, url):
        got, wait, body = await call(url)
        assert (got, wait) == (int(status), "1" if status in RETRIED else None)
        assert set(body["error"]) == {"message", "type"}
        assert len(gate.of(Applied)) == count
        assert (await call(url))[0] == 200


@pytest.mark.proves("tools.error")
async def test_an_error_without_an_argument_is_a_429(trial, call):
    async with trial(f"error@{AT}:before") as (_, url):
        assert (await call(url))[0] == 429


@pytest.mark.proves("tools.delay")
@pytest.mark.parametrize("edge", ["before", "after"])
async def test_delay(trial, edge, call):
    async with trial(f"delay(0.2)@{AT}:{edge}") as (gate, url):
        began = time.monotonic()
        slow = asyncio.create_task(call(url))
        await gate.record.sink.seen("fault")
        assert (await call(url, tool="other"))[0] == 200
        assert not slow.done(), "others pass meanwhile"
        assert await slow == (200, None, ANSWER)
        assert time.monotonic() - began >= 0.2


@pytest.mark.proves("tools.tear")
async def test_tear(trial, call):
    async with trial(f"tear@{AT}:part:1") as (gate, url):
        with pytest.raises(ConnectionResetError):
            await call(url)
        assert gate.edges() == ["before", "after", "part:1"]
        assert len(gate.of(Applied)) == 1


def _read_all(url):
    """What a raw socket is sent until the reset."""
    at, body = urlsplit(url), b'{"order":"o-1"}'
    head = f"POST {at.path}/pay HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    got = b""
    with socket.create_connection((at.hostname, at.port), timeout=30) as client:
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
async def test_duplicate(trial, cls, answer, call):
    async with trial(f"duplicate@{AT}:before", cls=cls) as (gate, url):
        status, _, body = await call(url, key="k")
        assert (status, body["result"]["id"]) == (200, f"pay[o-1]#{answer}")
        assert [d.duplicate for d in gate.of(Delivered)] == [False, True]
        applied = [(a.first, a.duplicate) for a in gate.of(Applied)]
        assert applied == [(True, False), (cls == "blind", True)]
        assert gate.edges() == ["before", "after"]
        assert len({event.message for event in gate.of(Delivered)}) == 1
