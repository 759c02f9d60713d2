"""A loop over a phase in a hash: asking until the phase is `over`."""

import json
import os

import redis

from chaoskit.selftest import kit


def main() -> int:
    """One life."""
    words = kit.words()
    name = f"run:{words.run}"
    store = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
    saved = store.hget(name, "messages")
    messages = [kit.user(words.goal)] if saved is None else json.loads(str(saved))

    def add(message: kit.Message) -> None:
        messages.append(message)
        store.hset(name, "messages", json.dumps(messages))

    while store.hget(name, "phase") != "over":
        for call in kit.unanswered(messages):
            text = kit.tool(call.tool, call.args, f"{words.run}/{call.id}")
            add(kit.result(call, text))
        add(kit.ask(messages))
        if kit.is_over(messages):
            store.hset(name, "phase", "over")
    return kit.finish(messages[-1]["content"])
