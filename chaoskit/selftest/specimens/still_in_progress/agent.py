"""A queue of steps in Redis; a step leaves it when the step after it is stored."""

import json
import os
from typing import Any

import redis

from chaoskit.selftest import kit

Context = dict[str, Any]


class Workflow:
    """The context of one run: messages, and the calls in progress, by id."""

    def __init__(self, words: kit.Words) -> None:
        self.run = words.run
        self.store = redis.Redis.from_url(os.environ["REDIS_URL"], protocol=2)
        saved = self.store.get(f"context:{words.run}")
        assert saved is None or isinstance(saved, bytes)
        fresh = {"messages": [kit.user(words.goal)], "in_progress": {}}
        self.context: Context = fresh if saved is None else json.loads(saved)

    def save(self) -> None:
        """Serialise the context."""
        self.store.set(f"context:{self.run}", json.dumps(self.context))

    def launch(self) -> None:
        """Start every step that is in progress; results go where they belong."""
        messages = self.context["messages"]
        for number, words in self.context["in_progress"].items():
            call = kit.Call(**words)
            text = kit.tool(call.tool, call.args, f"{self.run}/{number}")
            told = kit.result(call, text)
            if told not in messages:
                messages.append(told)
                self.save()

    def step(self) -> None:
        """One turn of the model; its calls are in progress from now on."""
        messages = self.context["messages"]
        messages.append(kit.ask(messages))
        turn = kit.turn_of(messages)
        self.context["in_progress"] = {
            f"{turn}/{position}": vars(call)
            for position, call in enumerate(kit.calls(messages[-1]))
        }
        self.save()


def main() -> int:
    """One life."""
    workflow = Workflow(kit.words())
    while not kit.is_over(workflow.context["messages"]):
        workflow.launch()
        workflow.step()
    return kit.finish(workflow.context["messages"][-1]["content"])
