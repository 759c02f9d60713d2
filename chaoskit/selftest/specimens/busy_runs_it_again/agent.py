"""A step acts and saves; where the store is busy, the step is tried again."""

import json
import os
import time
from collections.abc import Callable
from typing import Any

import redis

from chaoskit.selftest import kit

TRIES = 5
PAUSE_SECONDS = 0.01


def patiently(step: Callable[[], None]) -> None:
    """Run a step until the store has taken it."""
    for _ in range(TRIES):
        try:
            return step()
        except redis.ResponseError:
            time.sleep(PAUSE_SECONDS)
    raise SystemExit("the store is busy all the time")


class Run:
    """One run."""

    def __init__(self, words: kit.Words) -> None:
        self.store = redis.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )
        self.name = f"run:{words.run}"
        found: Any = self.store.get(self.name)
        self.messages: list[kit.Message] = (
            json.loads(found) if found else [kit.user(words.goal)]
        )

    def step(self) -> None:
        """A call or a turn, and the checkpoint behind it."""
        waiting = kit.unanswered(self.messages)
        if waiting:
            new = kit.result(waiting[0], kit.tool(waiting[0].tool, waiting[0].args))
        else:
            new = kit.ask(self.messages)
        messages = [*self.messages, new]
        self.store.set(self.name, json.dumps(messages))
        self.messages = messages


def main() -> int:
    """One life."""
    run = Run(kit.words())
    while not kit.is_over(run.messages):
        patiently(run.step)
    return kit.finish(run.messages[-1]["content"])
