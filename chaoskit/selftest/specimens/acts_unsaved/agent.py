"""Replies are streamed; whole steps are stored, a reply with all its results."""

import asyncio
import json
import os
import sys
from typing import Any

import aiohttp
import redis.asyncio

Message = dict[str, Any]
MODEL = {"model": "any", "stream": True}


async def ask(session: aiohttp.ClientSession, messages: list[Message]) -> Message:
    """The next turn, put together from its pieces."""
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    body = {**MODEL, "messages": messages}
    text, calls = "", dict[int, Message]()
    async with session.post(url, json=body, headers=headers) as answer:
        answer.raise_for_status()
        async for line in answer.content:
            data = line.removeprefix(b"data: ").strip()
            if not data or data == b"[DONE]":
                continue
            for choice in json.loads(data)["choices"]:
                text += choice["delta"].get("content") or ""
                for piece in choice["delta"].get("tool_calls") or ():
                    add(calls.setdefault(piece["index"], {"type": "function"}), piece)
    message: Message = {"role": "assistant", "content": text or None}
    return message | ({"tool_calls": [*calls.values()]} if calls else {})


def add(call: Message, piece: Message) -> None:
    """One more piece of a call."""
    function = call.setdefault("function", {"name": "", "arguments": ""})
    call.update({"id": piece["id"]} if piece.get("id") else {})
    for name, text in piece["function"].items():
        function[name] += text or ""


async def act(session: aiohttp.ClientSession, key: str, call: Message) -> Message:
    """One call, under a key that is the same in every life."""
    function = call["function"]
    url = f"{os.environ['CHAOSKIT_TOOLS_URL']}/{function['name']}"
    body, headers = json.loads(function["arguments"]), {"Idempotency-Key": key}
    async with session.post(url, json=body, headers=headers) as answer:
        answer.raise_for_status()
        text = json.dumps((await answer.json())["result"])
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


async def live(run: str, goal: str) -> int:
    """One life: step by step, each of them stored once it is whole."""
    store = redis.asyncio.Redis.from_url(os.environ["REDIS_URL"])
    saved = await store.get(f"run:{run}")
    messages = json.loads(saved) if saved else [{"role": "user", "content": goal}]
    async with aiohttp.ClientSession() as session, store:
        while "tool_calls" in messages[-1] or messages[-1]["role"] != "assistant":
            turn = await ask(session, messages)
            messages.append(turn)
            for position, call in enumerate(turn.get("tool_calls", ())):
                key = f"{run}/{len(messages)}/{position}"
                messages.append(await act(session, key, call))
            await store.set(f"run:{run}", json.dumps(messages))
    print(messages[-1]["content"])
    return 0


def main() -> int:
    """Called as `agent.py RUN --goal TEXT`."""
    _, run, _, goal = sys.argv
    return asyncio.run(live(run, goal))
