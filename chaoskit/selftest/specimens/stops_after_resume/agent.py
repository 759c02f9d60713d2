"""A loop that knows two ways in: from the beginning, and from where it was."""

import json
import os
from typing import Any

import redis

from chaoskit.selftest import kit


class Run:
    """One run in a hash in Redis."""

    def __init__(self, words: kit.Words) -> None:
        self.run = words.run
        self.store = redis.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )
        found: Any = self.store.hget(f"run:{words.run}", "messages")
        self.answer: Any = self.store.hget(f"run:{words.run}", "answer")
        self.resuming = found is not None
        self.messages: list[kit.Message] = (
            json.loads(found) if found else [kit.user(words.goal)]
        )

    def add(self, message: kit.Message) -> None:
        """One message more, saved."""
        self.messages.append(message)
        self.store.hset(f"run:{self.run}", "messages", json.dumps(self.messages))

    def go(self) -> int:
        """Calls that are open, then the next turn; what is resumed has its calls."""
        if self.answer is not None:
            return kit.finish(self.answer)
        while not kit.is_over(self.messages):
            waiting = kit.unanswered(self.messages)
            for call in waiting:
                key = f"{self.run}/{len(self.messages)}"
                self.add(kit.result(call, kit.tool(call.tool, call.args, key)))
            if waiting and self.resuming:
                break
            self.add(kit.ask(self.messages))
        self.answer = str(self.messages[-1]["content"])
        self.store.hset(f"run:{self.run}", "answer", self.answer)
        return kit.finish(self.answer)


def main() -> int:
    """One life."""
    return Run(kit.words()).go()
