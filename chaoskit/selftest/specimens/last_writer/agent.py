"""Calls of one turn are tasks that each know the run as it was when they began."""

import json
import os
from copy import deepcopy
from typing import Any

import redis

from chaoskit.selftest import kit

State = dict[str, Any]


class Task:
    """One call, and the run as it knows it."""

    def __init__(self, call: kit.Call, state: State) -> None:
        self.call = call
        self.state = deepcopy(state)

    def run(self, store: redis.Redis, name: str) -> None:
        """Act, add the result to what was read, write it all back."""
        result = kit.tool(self.call.tool, self.call.args)
        self.state["pending"][self.call.id] = result
        store.set(name, json.dumps(self.state))


def main() -> int:
    """One life."""
    words = kit.words()
    store, name = redis.Redis.from_url(os.environ["REDIS_URL"]), f"run:{words.run}"
    saved = store.get(name)
    assert saved is None or isinstance(saved, bytes)
    fresh = {"messages": [kit.user(words.goal)], "pending": {}}
    state: State = fresh if saved is None else json.loads(saved)
    while not kit.is_over(state["messages"]):
        calls = kit.unanswered(state["messages"])
        tasks = [Task(c, state) for c in calls if c.id not in state["pending"]]
        for task in tasks:
            task.run(store, name)
            state["pending"][task.call.id] = task.state["pending"][task.call.id]
        if calls:
            results = [kit.result(call, state["pending"][call.id]) for call in calls]
            state = {"messages": [*state["messages"], *results], "pending": {}}
            store.set(name, json.dumps(state))
        state["messages"].append(kit.ask(state["messages"]))
        store.set(name, json.dumps(state))
    return kit.finish(state["messages"][-1]["content"])
