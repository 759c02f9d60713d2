"""A list in Redis of what was said, and beside it the call that is being made.

What stands in the list twice goes to the model once.
"""

import json
import os
import sys
from typing import Any

import redis

from chaoskit.selftest import kit


class Run:
    """One run."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.store: Any = redis.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )

    def said(self) -> list[kit.Message]:
        """All that is in the list."""
        found: list[str] = self.store.lrange(f"said:{self.run}", 0, -1)
        return [json.loads(text) for text in found]

    def messages(self) -> list[kit.Message]:
        """What the model is to see: of two results for one call the first."""
        messages: list[kit.Message] = []
        for message in self.said():
            if message not in messages:
                messages.append(message)
        return messages

    def add(self, message: kit.Message) -> None:
        """Behind all the others."""
        self.store.rpush(f"said:{self.run}", json.dumps(message))

    def act(self, call: kit.Call) -> None:
        """Make it, append its result, close it: three steps."""
        self.store.set(f"open:{self.run}", json.dumps([call.id, call.tool, call.args]))
        text = kit.tool(call.tool, call.args, f"{self.run}/{call.id}")
        self.add(kit.result(call, text))
        self.store.delete(f"open:{self.run}")

    def recover(self) -> None:
        """A call that is open still is made again, under its key."""
        if found := self.store.get(f"open:{self.run}"):
            self.act(kit.Call(*json.loads(found)))


def main() -> int:
    """One life, or a look."""
    if sys.argv[1] == "inspect":
        said = Run(sys.argv[2]).said()
        print(json.dumps({"checkpoint_id": len(said), "transcript": said}))
        return 0
    words = kit.words()
    run = Run(words.run)
    run.recover()
    if not run.messages():
        run.add(kit.user(words.goal))
    while not kit.is_over(messages := run.messages()):
        for call in kit.unanswered(messages):
            run.act(call)
        run.add(kit.ask(run.messages()))
    return kit.finish(messages[-1]["content"])
