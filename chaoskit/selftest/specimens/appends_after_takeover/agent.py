"""A list in Redis holds the conversation; who has ended the run stands beside it.

Before each call, and before its answer, a life looks whether the run is over. It does
not look before it appends.
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
        self.store = redis.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )
        found: Any = self.store.lrange(f"said:{run}", 0, -1)
        self.messages: list[kit.Message] = [json.loads(text) for text in found]

    def answer(self) -> str | None:
        """The final one, once somebody has ended the run."""
        found: Any = self.store.get(f"answer:{self.run}")
        return None if found is None else str(found)

    def add(self, message: kit.Message) -> None:
        """Append, whoever has the run."""
        self.store.rpush(f"said:{self.run}", json.dumps(message))
        self.messages.append(message)


def main() -> int:
    """One life, or a look."""
    if sys.argv[1] == "inspect":
        said = Run(sys.argv[2]).messages
        print(json.dumps({"checkpoint_id": len(said), "transcript": said}))
        return 0
    words = kit.words()
    run = Run(words.run)
    while (answer := run.answer()) is None:
        if not run.messages:
            run.add(kit.user(words.goal))
        elif kit.is_over(run.messages):
            last = run.messages[-1]["content"]
            run.store.set(f"answer:{words.run}", last, nx=True)
        elif waiting := kit.unanswered(run.messages):
            call, key = waiting[0], f"{words.run}/{len(run.messages)}"
            run.add(kit.result(call, kit.tool(call.tool, call.args, key)))
        else:
            run.add(kit.ask(run.messages))
    return kit.finish(answer)
