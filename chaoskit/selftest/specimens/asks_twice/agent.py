"""A gate is kept apart from the conversation, and taken away by its answer."""

import json
import os
from typing import Any

import redis

from chaoskit.selftest import kit


class Run:
    """One run: what was said, and the turn that waits for a person."""

    def __init__(self, words: kit.Words) -> None:
        self.words = words
        self.store = redis.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )
        found: Any = self.store.get(f"run:{words.run}")
        fresh = {"messages": [kit.user(words.goal)], "gate": None}
        self.state: dict[str, Any] = json.loads(found) if found else fresh

    @property
    def messages(self) -> list[kit.Message]:
        """The conversation."""
        found: list[kit.Message] = self.state["messages"]
        return found

    def save(self) -> None:
        """In one write."""
        self.store.set(f"run:{self.words.run}", json.dumps(self.state))

    def take(self, answer: str) -> None:
        """The gate is stored as closed; its turn and the answer are in memory only."""
        gate, self.state["gate"] = self.state["gate"], None
        self.save()
        self.messages.append(gate)
        self.messages.append(kit.result(kit.calls(gate)[0], answer))

    def ask(self) -> None:
        """The next turn; one that asks a person ends this life."""
        said = kit.ask(self.messages)
        if any(call.tool == "ask_human" for call in kit.calls(said)):
            self.state["gate"] = said
            self.save()
            kit.park("waiting for a person")
        self.messages.append(said)
        self.save()

    def go(self) -> int:
        """To the end, or to a gate."""
        if self.state["gate"] is not None:
            if self.words.answer is None:
                kit.park("waiting for a person still")
            self.take(self.words.answer)
        while not kit.is_over(self.messages):
            for call in kit.unanswered(self.messages):
                key = f"{self.words.run}/{len(self.messages)}"
                self.messages.append(
                    kit.result(call, kit.tool(call.tool, call.args, key))
                )
                self.save()
            self.ask()
        return kit.finish(self.messages[-1]["content"])


def main() -> int:
    """One life."""
    return Run(kit.words()).go()
