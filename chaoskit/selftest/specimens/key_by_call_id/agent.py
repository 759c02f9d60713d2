"""An asyncio agent that keeps what was said in a file, in a form of its own."""

import asyncio
import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any

import aiohttp

Turn = dict[str, Any]


class Talk:
    """What was said so far: turns of the model, each with its calls and results."""

    def __init__(self, path: Path, goal: str) -> None:
        self.path = path
        self.goal = goal
        self.turns: list[Turn] = json.loads(path.read_text()) if path.exists() else []
        for turn in self.turns:
            for call in turn["calls"]:
                call["id"] = f"call_{uuid.uuid4().hex}"

    def save(self) -> None:
        """A new file, synced, then renamed over the old one; ids are left out."""
        kept = [
            {**turn, "calls": [{**call, "id": None} for call in turn["calls"]]}
            for turn in self.turns
        ]
        new = self.path.with_suffix(".new")
        with new.open("w") as file:
            json.dump(kept, file)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self.path)

    def messages(self) -> list[Turn]:
        """As the provider wants to have it told."""
        said: list[Turn] = [{"role": "user", "content": self.goal}]
        for turn in self.turns:
            said.append({"role": "assistant", "content": turn["text"]})
            if turn["calls"]:
                said[-1]["tool_calls"] = [_written(call) for call in turn["calls"]]
            said += [
                {"role": "tool", "tool_call_id": call["id"], "content": call["result"]}
                for call in turn["calls"]
            ]
        return said


def _written(call: Turn) -> Turn:
    function = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call["id"], "type": "function", "function": function}


async def live(session: aiohttp.ClientSession, talk: Talk) -> str:
    """Go on until the model only speaks."""
    while not talk.turns or talk.turns[-1]["calls"]:
        for call in talk.turns[-1]["calls"] if talk.turns else ():
            if call["result"] is None:
                call["result"] = await act(session, call)
                talk.save()
        talk.turns.append(await ask(session, talk.messages()))
        talk.save()
    return str(talk.turns[-1]["text"])


async def act(session: aiohttp.ClientSession, call: Turn) -> str:
    """The key is the call's id, which another life does not know."""
    url = f"{os.environ['CHAOSKIT_TOOLS_URL']}/{call['name']}"
    body, headers = json.loads(call["arguments"]), {"Idempotency-Key": call["id"]}
    async with session.post(url, json=body, headers=headers) as answer:
        answer.raise_for_status()
        return json.dumps((await answer.json())["result"])


async def ask(session: aiohttp.ClientSession, messages: list[Turn]) -> Turn:
    """The next turn."""
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    body = {"model": "any", "messages": messages}
    async with session.post(url, json=body, headers=headers) as answer:
        answer.raise_for_status()
        message = (await answer.json())["choices"][0]["message"]
    calls = [
        {"id": call["id"], **call["function"], "result": None}
        for call in message.get("tool_calls") or ()
    ]
    return {"text": message["content"], "calls": calls}


async def run(name: str, goal: str) -> int:
    """One life."""
    path = Path(os.environ["CHAOSKIT_STATE_DIR"]) / f"{name}.json"
    async with aiohttp.ClientSession() as session:
        answer = await live(session, Talk(path, goal))
    print(answer)
    return 0


def main() -> int:
    """Called as `agent.py RUN --goal TEXT`."""
    _, name, _, goal = sys.argv
    return asyncio.run(run(name, goal))
