"""Promises that no call is made twice, and tells the model where one may have failed.

A mark is set before a call; where it is there already, the call is not made again.
"""

import json
import os
from typing import Any

import redis

from chaoskit.selftest import kit

UNKNOWN = "interrupted; whether it was done is not known, and it is not tried again"


def main() -> int:
    """One life."""
    words = kit.words()
    store = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
    name = f"run:{words.run}"
    found: Any = store.get(name)
    messages = json.loads(found) if found else [kit.user(words.goal)]
    while not kit.is_over(messages):
        for call in kit.unanswered(messages):
            mark = f"begun:{words.run}:{len(messages)}"
            is_first = store.set(mark, os.getpid(), nx=True, ex=86_400)
            result = kit.tool(call.tool, call.args) if is_first else UNKNOWN
            messages.append(kit.result(call, result))
            store.set(name, json.dumps(messages))
        messages.append(kit.ask(messages))
        store.set(name, json.dumps(messages))
    return kit.finish(messages[-1]["content"])
