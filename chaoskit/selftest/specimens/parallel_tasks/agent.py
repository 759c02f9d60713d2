"""Calls of one turn are tasks that run at the same time, each with a field of its own.

A task of its own says all the while that the process is alive.
"""

import asyncio
import json
import os
import time
from typing import Any

import aiohttp
import redis.asyncio

from chaoskit.selftest import kit

BEAT_SECONDS = 0.005


class Agent:
    """One life of a run."""

    def __init__(self, words: kit.Words, http: aiohttp.ClientSession) -> None:
        self.words = words
        self.http = http
        self.store: Any = redis.asyncio.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )
        self.name = f"run:{words.run}"
        self.is_over = False

    async def post(self, url: str, body: Any, **headers: str) -> Any:
        """Send JSON, get JSON."""
        async with self.http.post(url, json=body, headers=headers) as response:
            response.raise_for_status()
            return await response.json()

    async def ask(self, messages: list[kit.Message]) -> kit.Message:
        """The model's next turn."""
        url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
        bearer = f"Bearer {os.environ['OPENAI_API_KEY']}"
        body = {"model": "any", "messages": messages}
        reply = await self.post(url, body, Authorization=bearer)
        message = reply["choices"][0]["message"]
        return {name: value for name, value in message.items() if value is not None}

    async def do(self, field: str, call: kit.Call) -> None:
        """One call; its result goes into a field of its own."""
        url = f"{os.environ['CHAOSKIT_TOOLS_URL']}/{call.tool}"
        key = {"Idempotency-Key": f"{self.words.run}-{field}"}
        answer = await self.post(url, call.args, **key)
        await self.store.hset(self.name, field, json.dumps(answer["result"]))

    async def beat(self) -> None:
        """Say that this process is alive, over and over."""
        store: Any = redis.asyncio.Redis.from_url(os.environ["REDIS_URL"])
        async with store:
            while not self.is_over:
                await store.set(f"alive:{self.words.run}", time.time())
                await asyncio.sleep(BEAT_SECONDS)

    async def go(self) -> str:
        """To the end; what was done before is in the fields."""
        fields = await self.store.hgetall(self.name)
        messages = [kit.user(self.words.goal)]
        for turn in range(100):
            if (text := fields.get(f"turn-{turn}")) is None:
                text = json.dumps(await self.ask(messages))
                await self.store.hset(self.name, f"turn-{turn}", text)
            messages.append(json.loads(text))
            if kit.is_over(messages):
                break
            calls = kit.calls(messages[-1])
            named = {f"call-{turn}-{n}": call for n, call in enumerate(calls)}
            missing = {n: call for n, call in named.items() if n not in fields}
            await asyncio.gather(*(self.do(n, call) for n, call in missing.items()))
            fields = await self.store.hgetall(self.name)
            messages += [kit.result(call, fields[n]) for n, call in named.items()]
        return str(messages[-1]["content"])


async def live(words: kit.Words) -> str:
    """One life, with a sign of it."""
    async with aiohttp.ClientSession() as http:
        agent = Agent(words, http)
        async with agent.store:
            beating = asyncio.create_task(agent.beat())
            try:
                return await agent.go()
            finally:
                agent.is_over = True
                await beating


def main() -> int:
    """See `live`."""
    return kit.finish(asyncio.run(live(kit.words())))
