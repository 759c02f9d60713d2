"""A turn that waits for a person has a key of its own until its answer is there."""

import json
import os
import sys
from typing import Any

import redis

from chaoskit.selftest import kit


class Run:
    """One run: the conversation, and the turn that waits."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.store = redis.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )
        found: Any = self.store.get(f"run:{run}")
        waits: Any = self.store.get(f"waits:{run}")
        self.messages: list[kit.Message] = json.loads(found) if found else []
        self.waits: kit.Message | None = json.loads(waits) if waits else None

    def add(self, *messages: kit.Message) -> None:
        """Behind those that are there."""
        self.messages += messages
        self.store.set(f"run:{self.run}", json.dumps(self.messages))

    def wait(self, turn: kit.Message) -> None:
        """Keep the turn until somebody answers."""
        self.store.set(f"waits:{self.run}", json.dumps(turn))
        kit.park("waiting for a person")

    def take(self, turn: kit.Message, answer: str) -> None:
        """The turn and its answer join the others.

        Here: between the two writes the turn is in neither place.
        """
        self.store.delete(f"waits:{self.run}")
        self.add(turn, kit.result(kit.calls(turn)[0], answer))

    def go(self, answer: str | None) -> int:
        """To the end, or to a gate."""
        if self.waits is not None:
            if answer is None:
                kit.park("waiting for a person still")
            self.take(self.waits, answer)
        while not kit.is_over(self.messages):
            for call in kit.unanswered(self.messages):
                key = f"{self.run}/{len(self.messages)}"
                self.add(kit.result(call, kit.tool(call.tool, call.args, key)))
            said = kit.ask(self.messages)
            if any(call.tool == "ask_human" for call in kit.calls(said)):
                self.wait(said)
            self.add(said)
        return kit.finish(self.messages[-1]["content"])


def main() -> int:
    """One life, or a look."""
    if sys.argv[1] == "inspect":
        run = Run(sys.argv[2])
        shown = [*run.messages, *([run.waits] if run.waits else [])]
        number = len(run.messages)
        print(json.dumps({"checkpoint_id": number, "transcript": shown}))
        return 0
    words = kit.words()
    run = Run(words.run)
    if not run.messages:
        run.add(kit.user(words.goal))
    return run.go(words.answer)
