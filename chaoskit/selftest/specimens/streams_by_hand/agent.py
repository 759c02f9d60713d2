"""Reads the model's stream by hand; keeps a log of synced lines, and cuts a torn one.

Nothing but the standard library, and none of the kit.
"""

import http.client
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Message = dict[str, Any]


class Log:
    """One line for each message; a line without an end was never written."""

    def __init__(self, path: Path) -> None:
        text = path.read_bytes() if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        self.messages: list[Message] = [json.loads(ln) for ln in whole.splitlines()]
        self.file = path.open("ab", buffering=0)
        self.file.truncate(len(whole))
        os.fsync(self.file.fileno())
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def add(self, message: Message) -> None:
        """Durable once it returns."""
        self.file.write(json.dumps(message).encode() + b"\n")
        os.fsync(self.file.fileno())
        self.messages.append(message)


def post(url: str, body: Any, headers: dict[str, str]) -> http.client.HTTPResponse:
    """Send JSON; anything but a 200 ends the life."""
    at = urlsplit(url)
    connection = http.client.HTTPConnection(str(at.hostname), at.port, timeout=30)
    whole = {"Content-Type": "application/json", **headers}
    connection.request("POST", at.path, json.dumps(body), whole)
    response = connection.getresponse()
    if response.status != 200:
        raise SystemExit(f"{response.status} from {url}")
    return response


def chunks(response: http.client.HTTPResponse) -> Iterator[Any]:
    """The events of a stream; one that ends without saying so raises."""
    for line in response:
        data = line.strip().removeprefix(b"data: ")
        if data == b"[DONE]":
            return
        if data:
            yield json.loads(data)
    raise SystemExit("the stream broke off")


def ask(messages: list[Message]) -> Message:
    """The model's next turn, put together from its pieces."""
    key = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    body = {"model": "any", "messages": messages, "stream": True}
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    content, reason = "", None
    calls: list[dict[str, Any]] = []
    for chunk in chunks(post(url, body, key)):
        if "error" in chunk:
            raise SystemExit("the stream holds an error")
        choice = chunk["choices"][0]
        reason = choice["finish_reason"] or reason
        content += choice["delta"].get("content") or ""
        for piece in choice["delta"].get("tool_calls") or ():
            if piece["index"] == len(calls):
                calls.append({**piece, "function": dict(piece["function"])})
                del calls[-1]["index"]
            else:
                found = calls[piece["index"]]["function"]
                found["arguments"] += piece["function"]["arguments"]
    if reason not in ("stop", "tool_calls"):
        raise SystemExit(f"the stream ended by {reason}")
    if calls:
        return {"role": "assistant", "content": content or None, "tool_calls": calls}
    return {"role": "assistant", "content": content}


def do(key: str, call: Any) -> Message:
    """One call, and what the model is told of it."""
    function = call["function"]
    url = f"{os.environ['CHAOSKIT_TOOLS_URL']}/{function['name']}"
    arguments = json.loads(function["arguments"])
    with post(url, arguments, {"Idempotency-Key": key}) as response:
        result = json.dumps(json.load(response)["result"])
    return {"role": "tool", "tool_call_id": call["id"], "content": result}


def main() -> int:
    """One life."""
    _, run, goal = sys.argv
    log = Log(Path(os.environ["CHAOSKIT_STATE_DIR"], f"{run}.log"))
    said: list[Message] = log.messages
    if not said:
        log.add({"role": "user", "content": goal})
    while True:
        last = max(
            (n for n, m in enumerate(said) if m["role"] == "assistant"), default=0
        )
        calls = said[last].get("tool_calls", [])
        done = len(said) - last - 1
        if done < len(calls):
            log.add(do(f"{run}-{last}-{done}", calls[done]))
        elif said[-1]["role"] == "assistant":
            print(said[-1]["content"])
            return 0
        else:
            log.add(ask(said))
