"""A published pattern: save after each step, and skip the tools that are noted as done.

The run lives in one Redis key. A tool runs, its result is noted under `completed`, and
a resumed run skips what is noted. It is careful in all but one thing: between the
effect and its note there is a moment, and a process that dies in it runs the tool
again. The service would recognise the repetition by a key; none is sent.

    python note_after_run.py --task ID --goal TEXT       (start and resume alike)
"""

import argparse
import json
import os
import sys
import urllib.request
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
        "completed": {},
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
    calls = calls_of(state["messages"][-1])
    results = [
        run_tool(store, state, f"{state['step']}.{position}", call["function"])
        for position, call in enumerate(calls)
    ]
    state["messages"] += [
        {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)}
        for call, result in zip(calls, results, strict=True)
    ]


def run_tool(store: redis.Redis, state: State, name: str, wanted: Any) -> Any:
    """The pattern: run it unless it is noted, then note it."""
    if name in state["completed"]:
        return state["completed"][name]
    log(state, "tool.intent", call=name)
    url = f"{os.environ['CHAOSKIT_TOOLS_URL']}/{wanted['name']}"
    result = post(url, json.loads(wanted["arguments"]))["result"]
    # Here: the tool has run, and nobody has noted it.
    state["completed"][name] = result
    save(store, state)
    log(state, "tool.result", call=name)
    return result


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
