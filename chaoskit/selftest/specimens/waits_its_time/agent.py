"""A list in Redis for the conversation, and a key that says when a wait is over.

The time is set once, for the call that asked for it, and outlives the wait.
"""

import json
import os
import time
from typing import Any

import redis

from chaoskit.selftest import kit


class Run:
    """One run."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.store = redis.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )
        found: Any = self.store.lrange(f"said:{run}", 0, -1)
        self.messages: list[kit.Message] = [json.loads(text) for text in found]

    def add(self, message: kit.Message) -> None:
        """One message more."""
        self.store.rpush(f"said:{self.run}", json.dumps(message))
        self.messages.append(message)

    def do(self, call: kit.Call) -> str:
        """One call; a wait that is not over parks the run."""
        place = f"{self.run}:{len(self.messages)}"
        if call.tool != "wait":
            return kit.tool(call.tool, call.args, place)
        self.store.set(f"due:{place}", time.time() + call.args["seconds"], nx=True)
        due: Any = self.store.get(f"due:{place}")
        if time.time() < float(due):
            kit.park(f"not before {due}")
        return "waited"


def main() -> int:
    """One life."""
    words = kit.words()
    run = Run(words.run)
    if not run.messages:
        run.add(kit.user(words.goal))
    while not kit.is_over(run.messages):
        for call in kit.unanswered(run.messages):
            run.add(kit.result(call, run.do(call)))
        run.add(kit.ask(run.messages))
    return kit.finish(run.messages[-1]["content"])
