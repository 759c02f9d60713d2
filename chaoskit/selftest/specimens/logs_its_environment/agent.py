"""A durable list in Redis, and a log line with the settings that a life began with."""

import json
import os
import sys
from typing import Any

import redis

from chaoskit.selftest import kit


def main() -> int:
    """One life."""
    words = kit.words()
    print("settings:", dict(os.environ), file=sys.stderr, flush=True)
    store = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
    name = f"said:{words.run}"
    found: Any = store.lrange(name, 0, -1)
    messages = [kit.user(words.goal), *map(json.loads, found)]
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            call, key = waiting[0], f"{words.run}/{len(messages)}"
            new = kit.result(call, kit.tool(call.tool, call.args, key))
        else:
            new = kit.ask(messages)
        store.rpush(name, json.dumps(new))
        messages.append(new)
    return kit.finish(messages[-1]["content"])
