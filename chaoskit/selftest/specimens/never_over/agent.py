"""A stream in Redis, an entry for each message; the answer goes to the caller only."""

import json
import os
from typing import Any

import redis

from chaoskit.selftest import kit


def main() -> int:
    """One life."""
    words = kit.words()
    name = f"stream:{words.run}"
    store = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
    entries: Any = store.xrange(name)
    messages = [
        kit.user(words.goal),
        *(json.loads(fields["text"]) for _, fields in entries),
    ]
    while True:
        for position, call in enumerate(kit.unanswered(messages)):
            key = f"{words.run}/{kit.turn_of(messages)}/{position}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
            store.xadd(name, {"text": json.dumps(messages[-1])})
        messages.append(kit.ask(messages))
        if kit.is_over(messages):
            return kit.finish(messages[-1]["content"])
        store.xadd(name, {"text": json.dumps(messages[-1])})
