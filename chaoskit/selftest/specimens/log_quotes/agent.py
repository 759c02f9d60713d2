"""Logs what a person would want to read."""

import json
import os
from typing import Any

import redis

from chaoskit.selftest import kit


class Run:
    """One run: its conversation in Redis, and where it is for the log."""

    def __init__(self, words: kit.Words) -> None:
        self.words = words
        self.store = redis.Redis.from_url(os.environ["REDIS_URL"], protocol=2)
        saved = self.store.get(f"run:{words.run}")
        assert saved is None or isinstance(saved, bytes)
        fresh: dict[str, Any] = {"n": 0, "messages": [kit.user(words.goal)]}
        self.state: dict[str, Any] = fresh if saved is None else json.loads(saved)
        self.messages: list[kit.Message] = self.state["messages"]

    def log(self, event: str, **more: Any) -> None:
        """One line."""
        kit.log(event, self.words.run, len(self.messages), self.state["n"], **more)

    def add(self, message: kit.Message) -> None:
        """One more message, and the next checkpoint."""
        self.messages.append(message)
        new: dict[str, Any] = {"n": self.state["n"] + 1, "messages": self.messages}
        self.store.set(f"run:{self.words.run}", json.dumps(new))
        self.state = new
        self.log("run.checkpoint")

    def go(self) -> int:
        """To the end."""
        self.log("run.start")
        if self.words.resumed:
            self.log("run.resume", last=str(self.messages[-1].get("content")))
        while not kit.is_over(self.messages):
            for call in kit.unanswered(self.messages):
                self.act(call)
            self.add(kit.ask(self.messages))
        self.log("run.end")
        return kit.finish(self.messages[-1]["content"])

    def act(self, call: kit.Call) -> None:
        """One call, under the name that the model gave it."""
        self.log("tool.intent", call=call.id)
        text = kit.tool(call.tool, call.args, f"{self.words.run}/{call.id}")
        self.add(kit.result(call, text))
        self.log("tool.result", call=call.id)


def main() -> int:
    """One life."""
    return Run(kit.words()).go()
