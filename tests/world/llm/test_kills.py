"""Kills at the model: what was lost, what was not, and that no one complains."""

import asyncio

import aiohttp
import pytest

from chaoskit.model.history import Asked, Crossed, FaultFired
from chaoskit.world.llm import Llm

USER = {"role": "user", "content": "Book a flight to NYC"}
BODY = {"model": "m", "messages": [USER]}


async def _post(client, env):
    url = f"{env['OPENAI_BASE_URL']}/chat/completions"
    headers = {"Authorization": f"Bearer {env['OPENAI_API_KEY']}"}
    async with client.post(url, json=BODY, headers=headers) as reply:
        return reply.status, await reply.json()


@pytest.mark.parametrize("edge", ["before", "after"])
async def test_a_kill_cuts_the_connection_without_a_word(
    serve, make_gate, make_scenario, web, edge
):
    killed: list[int] = []
    gate = make_gate(f"kill@0:llm.chat#2:{edge}", killed)
    llm = Llm()
    async with serve(llm, gate, make_scenario()) as env, web() as client:
        assert (await _post(client, env))[0] == 200
        with pytest.raises(aiohttp.ClientConnectionError):
            await _post(client, env)
        assert killed == [0]
        kinds = [type(event) for event in gate.record.events[3:]]
        held = [Crossed] if edge == "before" else [Crossed, Crossed]
        assert kinds == [Asked, *held, FaultFired]
        assert (await llm.snapshot()).replies == (1 if edge == "before" else 2)
        assert gate.unfired == []


async def test_the_next_life_is_served_on_the_same_port(
    serve, make_gate, make_scenario, web
):
    gate = make_gate("kill@0:llm.chat#1:after")
    llm = Llm()
    async with serve(llm, gate, make_scenario()) as env, web() as client:
        with pytest.raises(aiohttp.ClientConnectionError):
            await _post(client, env)
        await llm.close(0)
        with pytest.raises(aiohttp.ClientConnectionError):
            await _post(client, env)
        assert await llm.open(1) == env
        assert (await _post(client, env))[0] == 200
    lives = [e.life for e in gate.record.events if isinstance(e, Asked)]
    assert lives == [0, 1]


async def test_an_idle_connection_of_a_dead_life_is_closed_and_not_used_again(
    serve, make_gate, make_scenario
):
    llm = Llm()
    async with serve(llm, make_gate(), make_scenario()) as env:
        port = int(env["OPENAI_BASE_URL"].split(":")[2].split("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        await llm.close(0)
        await llm.open(1)
        with pytest.raises(ConnectionResetError):
            await reader.read()  # to its end, which comes only if the socket was closed
        writer.close()


async def test_every_life_lost_at_once_is_quiet(serve, make_gate, make_scenario, web):
    gate = make_gate("kill@0:llm.chat#1:before")
    async with serve(Llm(), gate, make_scenario()) as env, web() as client:
        asked = [_post(client, env) for _ in range(20)]
        got = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(reply, aiohttp.ClientConnectionError) for reply in got)
        await gate.settled(0)
    fired = gate.of(FaultFired)
    assert len(fired) == 1
