"""Records what the official clients send to the `llm` service, and what they get.

Run by hand, where a client has a new version or the service answers otherwise:
``python tests/world/llm/record_clients.py``. Each file in ``recorded`` is one
conversation: its scenario, and a list of what was ``sent`` and ``got``, byte for byte,
in which ``{canary}`` stands for the key.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx2
import openai

from chaoskit.gate import FreshNames, Gate, Recorder
from chaoskit.model.history import Cause
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.world.llm import Llm
from chaoskit.world.llm.key import CANARY, without_canary

HERE = Path(__file__).parent / "recorded"
GOAL = "Book a flight to Zürich"
SCENARIO = {
    "name": "recorded",
    "agent": "agent.yaml",
    "task": {"goal": GOAL},
    "llm": {
        "script": [
            {
                "call": [
                    {"tool": "search", "args": {"to": "Zürich"}},
                    {"tool": "pay", "args": {"order": "o-1", "cents": 42000}},
                ]
            },
            {"say": "Booked: 12A, “window”."},
        ],
        "fresh_ids": False,
    },
    "tools": {"search": {"class": "read"}, "pay": {"class": "keyed"}},
}
SCHEMA = {"type": "object", "properties": {"order": {"type": "string"}}}
NAMES = ("search", "pay")
USER = {"role": "user", "content": GOAL}


async def chat(client: Any) -> None:
    """Both steps of the script, whole."""
    tools = [
        {"type": "function", "function": {"name": name, "parameters": SCHEMA}}
        for name in NAMES
    ]
    said = await client.create(model="m", messages=[USER], tools=tools)
    messages = [USER, said.choices[0].message, *_results(said)]
    await client.create(model="m", messages=messages, tools=tools)


async def chat_streamed(client: Any) -> None:
    """The same as streams, with what they cost."""
    options = {"model": "m", "stream_options": {"include_usage": True}}
    async with client.stream(messages=[USER], **options) as stream:
        said = await stream.get_final_completion()
    messages = [USER, said.choices[0].message, *_results(said)]
    async with client.stream(messages=messages, **options) as stream:
        await stream.get_final_completion()


def _results(said: Any) -> list[Any]:
    return [
        {"role": "tool", "tool_call_id": call.id, "content": "ok"}
        for call in said.choices[0].message.tool_calls
    ]


async def responses(client: Any) -> None:
    """Both steps, whole; the second refers to the first."""
    tools = [{"type": "function", "name": n, "parameters": SCHEMA} for n in NAMES]
    said = await client.create(model="m", input=GOAL, tools=tools)
    await client.create(
        model="m", input=_outputs(said), previous_response_id=said.id, tools=tools
    )


async def responses_streamed(client: Any) -> None:
    """The same as streams, with items."""
    async with client.stream(model="m", input=GOAL) as stream:
        said = await stream.get_final_response()
    items = [USER, *said.output, *_outputs(said)]
    async with client.stream(model="m", input=items) as stream:
        await stream.get_final_response()


def _outputs(said: Any) -> list[Any]:
    return [
        {"type": "function_call_output", "call_id": item.call_id, "output": "ok"}
        for item in said.output
        if item.type == "function_call"
    ]


async def messages(client: Any) -> None:
    """Both steps, whole."""
    options: Any = {"model": "m", "max_tokens": 500}
    options["tools"] = [{"name": n, "input_schema": SCHEMA} for n in NAMES]
    said = await client.create(messages=[USER], **options)
    await client.create(messages=_answered(said), **options)


async def messages_streamed(client: Any) -> None:
    """The same as streams."""
    options: Any = {"model": "m", "max_tokens": 500}
    async with client.stream(messages=[USER], **options) as stream:
        said = await stream.get_final_message()
    async with client.stream(messages=_answered(said), **options) as stream:
        await stream.get_final_message()


def _answered(said: Any) -> list[Any]:
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": "ok"}
        for block in said.content
        if block.type == "tool_use"
    ]
    return [
        USER,
        {"role": "assistant", "content": said.content},
        {"role": "user", "content": results},
    ]


class Tape:
    """A proxy that keeps each request with its reply; one at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.connections: list[asyncio.Task[Any] | None] = []
        self.exchanges: list[dict[str, bytearray]] = []

    async def __call__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve one connection."""
        self.connections.append(asyncio.current_task())
        there = await asyncio.open_connection("127.0.0.1", self._port)
        await asyncio.gather(
            self._pump(reader, there[1], "sent"), self._pump(there[0], writer, "got")
        )

    async def _pump(self, source: Any, sink: Any, side: str) -> None:
        while data := await source.read(65536):
            if side == "sent" and (not self.exchanges or self.exchanges[-1]["got"]):
                self.exchanges.append({"sent": bytearray(), "got": bytearray()})
            self.exchanges[-1][side] += data
            sink.write(data)
        sink.close()


Say = Callable[[Any], Awaitable[None]]
CONVERSATIONS: Sequence[tuple[str, type, str, Say]] = (
    ("OPENAI_BASE_URL", openai.AsyncOpenAI, "chat.completions", chat),
    ("OPENAI_BASE_URL", openai.AsyncOpenAI, "chat.completions", chat_streamed),
    ("OPENAI_BASE_URL", openai.AsyncOpenAI, "responses", responses),
    ("OPENAI_BASE_URL", openai.AsyncOpenAI, "responses", responses_streamed),
    ("ANTHROPIC_BASE_URL", anthropic.AsyncAnthropic, "messages", messages),
    ("ANTHROPIC_BASE_URL", anthropic.AsyncAnthropic, "messages", messages_streamed),
)
"""The variable with the URL, the client, what of it is used, and the conversation."""


async def nobody(life: int, cause: Cause) -> None:
    """No life is ended here."""


async def record(variable: str, make: Any, part: str, say: Say) -> None:
    """Record one conversation."""
    llm = Llm()
    await llm.start()
    gate = Gate(Recorder(), FreshNames("run-7f3a"), Schedule(), nobody)
    await llm.reset(gate, Scenario.model_validate(SCENARIO))
    url = urlsplit((await llm.open(0))[variable])
    tape = Tape(url.port or 0)
    proxy = await asyncio.start_server(tape, "127.0.0.1", 0)
    here = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}{url.path}"
    plain = httpx2.AsyncClient(verify=False, trust_env=False)
    async with make(base_url=here, api_key=CANARY, http_client=plain) as client:
        await say(attrgetter(part)(client))
    proxy.close()
    await asyncio.wait(filter(None, tape.connections))
    await llm.stop()
    exchanges = [{k: v.decode() for k, v in each.items()} for each in tape.exchanges]
    recorded = {"scenario": SCENARIO, "exchanges": exchanges}
    text = json.dumps(recorded, indent=1, ensure_ascii=False)
    HERE.mkdir(exist_ok=True)
    (HERE / f"{say.__name__}.json").write_text(without_canary(text) + "\n")


async def main() -> None:
    """Record all of them."""
    for each in CONVERSATIONS:
        await record(*each)


if __name__ == "__main__":
    asyncio.run(main())
