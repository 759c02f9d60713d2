"""A conversation in Redis; keys come from a counter of the process."""

import itertools
import json
import os

import redis

from chaoskit.selftest import kit


def main() -> int:
    """One life."""
    words, numbers = kit.words(), itertools.count(1)
    store = redis.Redis.from_url(os.environ["REDIS_URL"], protocol=2)
    saved = store.get(f"run:{words.run}")
    assert saved is None or isinstance(saved, bytes)
    messages = [kit.user(words.goal)] if saved is None else json.loads(saved)

    def add(message: kit.Message) -> None:
        messages.append(message)
        store.set(f"run:{words.run}", json.dumps(messages))

    while not kit.is_over(messages):
        for call in kit.unanswered(messages):
            key = f"{words.run}/{next(numbers)}"
            add(kit.result(call, kit.tool(call.tool, call.args, key)))
        add(kit.ask(messages))
    return kit.finish(messages[-1]["content"])
