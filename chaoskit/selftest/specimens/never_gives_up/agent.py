"""Promises to give a run up after two deaths at one call, and counts none."""

import json
import os
from typing import Any

import redis

from chaoskit.selftest import kit


def main() -> int:
    """One life."""
    words = kit.words()
    store = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
    name = f"run:{words.run}"
    found: Any = store.get(name)
    messages = json.loads(found) if found else [kit.user(words.goal)]
    while not kit.is_over(messages):
        for call in kit.unanswered(messages):
            key = f"{words.run}/{len(messages)}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
        messages.append(kit.ask(messages))
        store.set(name, json.dumps(messages))
    return kit.finish(messages[-1]["content"])
