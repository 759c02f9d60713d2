"""A small agent that keeps its state on its own disk: a file, fsynced and renamed.

    python disk_agent.py RUN GOAL

It does every promise right as long as the disk is there: a call's key is its place in
the conversation, and what it knows is on the disk before it goes on.
"""

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any

RUN, GOAL = sys.argv[1:]
FOLDER = Path("/var/lib/disk-agent")
JSON = {"Content-Type": "application/json"}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("hold_seat", "charge_card")
]


def post(url: str, body: Any, **headers: str) -> Any:
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, JSON | headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def load() -> list[Any]:
    try:
        messages: list[Any] = json.loads((FOLDER / RUN).read_text())
    except FileNotFoundError:
        return [{"role": "user", "content": GOAL}]
    return messages


def save(messages: list[Any]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "new").open("w") as file:
        json.dump(messages, file)
        file.flush()
        os.fsync(file.fileno())
    (FOLDER / "new").rename(FOLDER / RUN)
    folder = os.open(FOLDER, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def ask(messages: list[Any]) -> Any:
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    body = {"model": "any", "messages": messages, "tools": TOOLS}
    key = f"Bearer {os.environ['OPENAI_API_KEY']}"
    message = post(url, body, Authorization=key)["choices"][0]["message"]
    return {name: value for name, value in message.items() if value is not None}


def act(turn: int, position: int, call: Any) -> Any:
    function = call["function"]
    url = f"{os.environ['CHAOSKIT_TOOLS_URL']}/{function['name']}"
    key = {"Idempotency-Key": f"{RUN}-{turn}-{position}"}
    result = post(url, json.loads(function["arguments"]), **key)["result"]
    return {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)}


def main() -> None:
    messages = load()
    while True:
        turns = [at for at, m in enumerate(messages) if m["role"] == "assistant"]
        calls = messages[turns[-1]].get("tool_calls", []) if turns else []
        answered = len(messages) - 1 - turns[-1] if turns else 0
        for position, call in list(enumerate(calls))[answered:]:
            messages.append(act(len(turns) - 1, position, call))
            save(messages)
        if turns and not calls:
            print(messages[-1]["content"])
            return
        messages.append(ask(messages))
        save(messages)


main()
