"""A published pattern: look for a done marker, act if there is none, insert the marker.

The conversation lives in one Redis key and each call's marker in another. It is careful
in all but one thing: acting and marking are two steps, and a process that dies between
them acts again, for it finds no marker. The service would recognise the repetition by a
key; none is sent.

    python check_act_mark.py --task ID --goal TEXT       (start and resume alike)
"""

import argparse
import json
import os
import sys
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Any

import redis

DAY_SECONDS = 24 * 60 * 60
TOOLS = ("search_flights", "hold_seat", "charge_card")

State = dict[str, Any]


def main() -> int:
    """Live one life; returns the exit code."""
    parser = argparse.ArgumentParser(description="Starts a run, or goes on with it.")
    parser.add_argument("--task", required=True)
    parser.add_argument("--goal", required=True)
    options = parser.parse_args()
    store = redis.Redis.from_url(os.environ["REDIS_URL"], protocol=2)
    state = load(store, options.task, options.goal)
    log(state, "run.start")
    while state["answer"] is None:
        if calls_of(state["messages"][-1]):
            run_tools(store, state)
        ask_model(store, state)
    log(state, "run.end")
    print(state["answer"])
    return 0


def once(store: redis.Redis, marker: str, act: Callable[[], str]) -> str:
    """The pattern: select, act, insert."""
    earlier: Any = store.get(marker)
    if earlier is not None:
        return str(earlier.decode())
    result = act()
    # Here: it has acted, and nothing shows it.
    store.set(marker, result, nx=True, ex=DAY_SECONDS)
    return result


def load(store: redis.Redis, run: str, goal: str) -> State:
    """The run as it was saved, or a new one."""
    saved: Any = store.get(f"agent:checkpoint:{run}")
    if saved is not None:
        found: State = json.loads(saved)
        return found
    return {
        "run_id": run,
        "step": 0,
        "checkpoint_id": 0,
        "messages": [{"role": "user", "content": goal}],
        "answer": None,
    }


def save(store: redis.Redis, state: State) -> None:
    """Replace the checkpoint, in one write."""
    state["checkpoint_id"] += 1
    key = f"agent:checkpoint:{state['run_id']}"
    store.set(key, json.dumps(state), ex=DAY_SECONDS)
    log(state, "checkpoint")


def ask_model(store: redis.Redis, state: State) -> None:
    """Ask for the next turn, and save it before anything is done about it."""
    state["step"] += 1
    log(state, "model.start")
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    question = {"model": "any", "messages": state["messages"], "tools": offers()}
    reply = post(url, question, Authorization=f"Bearer {os.environ['OPENAI_API_KEY']}")
    message = reply["choices"][0]["message"]
    log(state, "model.end")
    state["messages"].append(message)
    if not calls_of(message):
        state["answer"] = message["content"]
    save(store, state)


def run_tools(store: redis.Redis, state: State) -> None:
    """Run the calls of the last turn, one after the other, and add their results."""
    results = []
    for position, call in enumerate(calls_of(state["messages"][-1])):
        name = f"{state['step']}.{position}"
        log(state, "tool.intent", call=name)
        marker = f"agent:done:{state['run_id']}:{name}"
        text = once(store, marker, partial(run_tool, call["function"]))
        log(state, "tool.result", call=name)
        results.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    state["messages"] += results


def run_tool(wanted: Any) -> str:
    """Do the effect."""
    url = f"{os.environ['CHAOSKIT_TOOLS_URL']}/{wanted['name']}"
    return json.dumps(post(url, json.loads(wanted["arguments"]))["result"])


def calls_of(message: Any) -> list[Any]:
    """The tool calls that a message asks for."""
    return message.get("tool_calls") or []


def offers() -> list[Any]:
    """The tools as the model is offered them."""
    return [
        {
            "type": "function",
            "function": {"name": name, "parameters": {"type": "object"}},
        }
        for name in TOOLS
    ]


def post(url: str, body: Any, **headers: str) -> Any:
    """Send JSON, get JSON; any error ends the life, and the next one goes on."""
    headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def log(state: State, event: str, **fields: str) -> None:
    """One JSON line: where the run is, and nothing of what was said."""
    place = {name: state[name] for name in ("run_id", "step", "checkpoint_id")}
    line = {"level": "info", "event": event, **place, **fields}
    print(json.dumps(line), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
