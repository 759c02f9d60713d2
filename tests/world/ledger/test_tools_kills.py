"""Kills at a tool: nothing, once, or once and late; and the ledger knows."""

import asyncio

import aiohttp
import pytest

from chaoskit.gate import Dropped
from chaoskit.model.history import Applied, Crossed, Delivered
from chaoskit.world.http import HttpLives, Reply
from chaoskit.world.tools import Tools

TOOLS = {"pay": "blind"}


@pytest.fixture
def scenario(make_scenario):
    return make_scenario(tools=TOOLS)


async def _pay(client, env, order="o-1"):
    url = f"{env['CHAOSKIT_TOOLS_URL']}/pay"
    async with client.post(url, json={"order": order}) as reply:
        return await reply.json()


@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
async def test_a_kill_leaves_the_ledger_as_the_edge_says(
    serve, make_gate, scenario, web, edge, count
):
    killed: list[int] = []
    gate, tools = make_gate(f"kill@0:tools.pay[o-1]#1:{edge}", killed), Tools()
    async with serve(tools, gate, scenario) as env, web() as client:
        with pytest.raises(aiohttp.ClientConnectionError):
            await _pay(client, env)
        assert killed == [0]
        assert len(await tools.snapshot()) == count
        assert len(gate.of(Delivered)) == 1
        assert [event.late for event in gate.of(Applied)] == [False] * count


async def test_a_message_past_the_gate_is_applied_late_and_not_answered(
    serve, make_gate, scenario, web, hold
):
    """While o-1 is held, o-2 and then o-3 queue; o-2 passes ``before``, o-3 kills."""
    held = hold("0:tools.pay[o-1]#1:before")
    gate = make_gate("kill@0:tools.pay[o-3]#1:before", watch=held)
    tools = Tools()
    async with serve(tools, gate, scenario) as env, web() as client:
        sent = []
        for number in (1, 2, 3):
            sent.append(asyncio.create_task(_pay(client, env, f"o-{number}")))
            await gate.record.sink.seen("delivered", number)
        held.let_go.set()
        await gate.record.sink.seen("fault")
        await tools.close(0)
        await gate.settled(0)
        got = await asyncio.gather(*sent, return_exceptions=True)
        assert all(isinstance(reply, aiohttp.ClientConnectionError) for reply in got)
    applied = [(event.args["order"], event.late) for event in gate.of(Applied)]
    assert applied == [("o-1", True), ("o-2", True)]
    crossed = [e.address for e in gate.of(Crossed) if e.late]
    assert crossed == ["0:tools.pay[o-1]#1:after", "0:tools.pay[o-2]#1:after"]


async def test_a_client_that_hangs_up_does_not_stop_its_message(
    serve, make_gate, scenario, web, hold
):
    held = hold("0:tools.pay[o-1]#1:before")
    gate = make_gate(watch=held)
    async with serve(Tools(), gate, scenario) as env, web() as client:
        sent = asyncio.create_task(_pay(client, env))
        await held.held.wait()
        sent.cancel()
        await asyncio.gather(sent, return_exceptions=True)
        held.let_go.set()
        await gate.settled(0)
        assert [event.late for event in gate.of(Applied)] == [False]


async def test_what_arrives_after_the_end_of_a_life_is_no_message(
    serve, make_gate, scenario, web
):
    gate, tools = make_gate(), Tools()
    async with serve(tools, gate, scenario) as env, web() as client:
        gate.close(0)
        with pytest.raises(aiohttp.ClientConnectionError):
            await _pay(client, env)
        assert gate.record.events == []


def _connect(env):
    port = int(env["CHAOSKIT_TOOLS_URL"].split(":")[2].split("/")[0])
    return asyncio.open_connection("127.0.0.1", port)


async def test_a_request_cut_in_the_middle_is_no_message(
    serve, make_gate, scenario, web
):
    gate, tools = make_gate(), Tools()
    async with serve(tools, gate, scenario) as env, web() as client:
        reader, writer = await _connect(env)
        writer.write(b"POST /tools/pay HTTP/1.1\r\nContent-Length: 9\r\n\r\n{")
        await writer.drain()
        writer.close()
        await reader.read()
        await _pay(client, env, "o-2")
        await tools.close(0)
    assert [event.args for event in gate.of(Delivered)] == [{"order": "o-2"}]


@pytest.mark.parametrize(
    "garbage", [b"\x16\x03\x01 hello\r\n\r\n", b"GET / HTTP/1.1\r\nno header\r\n\r\n"]
)
async def test_what_is_no_http_is_refused_quietly(serve, make_gate, scenario, garbage):
    async with serve(Tools(), make_gate(), scenario) as env:
        reader, writer = await _connect(env)
        writer.write(garbage)
        assert (await reader.readline()).startswith(b"HTTP/1.0 400")
        writer.close()


async def test_one_connection_serves_many_calls(serve, make_gate, scenario):
    gate = make_gate()
    connector = aiohttp.TCPConnector(limit=1)
    async with (
        serve(Tools(), gate, scenario) as env,
        aiohttp.ClientSession(connector=connector) as client,
    ):
        for number in range(5):
            await _pay(client, env, f"o-{number}")
        (pool,) = connector._conns.values()
        assert len(pool) == 1
    assert len(gate.of(Applied)) == 5


async def test_snapshots_bring_the_ledger_back(serve, make_gate, scenario, web):
    tools = Tools()
    async with serve(tools, make_gate(), scenario) as env:
        async with web() as client:
            await _pay(client, env)
        saved, view = await tools.snapshot(), await tools.view()
        await tools.reset(make_gate(), scenario)
        assert await tools.view() == {}
        await tools.restore(saved)
        assert await tools.view() == view
        async with web() as client:
            reply = await _pay(client, await tools.open(3))
        assert reply["result"]["id"] == "pay[o-1]#2"
        assert len(saved) == 1, "a snapshot does not move"


async def test_late_work_of_an_earlier_trial_stays_out_of_the_next_ledger(
    serve, make_gate, scenario, web, hold
):
    held = hold("0:tools.pay[o-1]#1:before")
    gate, tools = make_gate(watch=held), Tools()
    async with serve(tools, gate, scenario) as env, web() as client:
        sent = asyncio.create_task(_pay(client, env))
        await held.held.wait()
        await tools.reset(make_gate(), scenario)
        held.let_go.set()
        with pytest.raises(aiohttp.ClientConnectionError):
            await sent
        await gate.settled(0)
        assert len(gate.of(Applied)) == 1
        assert await tools.snapshot() == ()


async def test_a_bug_of_ours_is_raised_to_us_and_is_no_answer_to_the_agent(
    web, make_gate
):
    async def broken(request):
        raise KeyError("ours")

    lives = HttpLives(100, Reply(None, 413))
    port = await lives.start()
    await lives.open(0, broken, make_gate())
    async with web() as client:
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.get(f"http://127.0.0.1:{port}/")
    with pytest.raises(KeyError, match="ours"):
        await lives.close(0)
    await lives.stop()


async def test_a_connection_accepted_in_the_last_moment_is_cut_too(make_gate):
    """Accepted by the loop, announced to the server only after its life was closed."""

    async def never(request):
        raise Dropped

    lives = HttpLives(100, Reply(None, 413))
    port = await lives.start()
    await lives.open(0, never, make_gate())
    served = lives._open[0]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    served._over = True
    late_reader, late_writer = await asyncio.open_connection("127.0.0.1", port)
    with pytest.raises(ConnectionResetError):
        await late_reader.read()
    await lives.close(0)
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()
    late_writer.close()
    await lives.stop()


async def test_services_listen_on_the_loopback_interface_only(
    serve, make_gate, scenario
):
    tools = Tools()
    async with serve(tools, make_gate(), scenario) as env:
        assert env["CHAOSKIT_TOOLS_URL"].startswith("http://127.0.0.1:")
        sockets = tools._http._port._entrance.server.sockets
        assert [sock.getsockname()[0] for sock in sockets] == ["127.0.0.1"]
