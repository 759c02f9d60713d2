"""A script in Redis saves only what goes on from the newest version.

Where it refuses, the life takes it that its own save has come before, and goes on.
"""

import json
import os
import sys
from typing import Any

import redis

from chaoskit.selftest import kit

SAVE = """
local version = tonumber(redis.call('HGET', KEYS[1], 'version') or '0')
if version >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'messages', ARGV[2])
return 1
"""


def load(store: redis.Redis, run: str) -> list[kit.Message]:
    """What was said so far; the number of messages is the version."""
    found: Any = store.hget(f"run:{run}", "messages")
    messages: list[kit.Message] = json.loads(found or "[]")
    return messages


def save(store: redis.Redis, run: str, messages: list[kit.Message]) -> None:
    """Refused or not: the version is there."""
    store.eval(SAVE, 1, f"run:{run}", len(messages), json.dumps(messages))


def main() -> int:
    """One life, or a look."""
    store = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
    if sys.argv[1] == "inspect":
        messages = load(store, sys.argv[2])
        print(json.dumps({"checkpoint_id": len(messages), "transcript": messages}))
        return 0
    words = kit.words()
    messages = load(store, words.run) or [kit.user(words.goal)]
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            call, key = waiting[0], f"{words.run}/{len(messages)}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
        else:
            messages.append(kit.ask(messages))
        save(store, words.run, messages)
    return kit.finish(messages[-1]["content"])
