"""A conversation in one Redis value, saved after each step; words spoil one thing.

``no-key``: effects carry no key. ``asks-anew``: nothing is ever loaded.
``two-minds``: no two of its fault-free runs are alike.
"""

import json
import os
import sys
from pathlib import Path

import redis

from chaoskit.selftest import kit


def main() -> int:
    """One life, from the last saved step to the end."""
    spoilt, sys.argv[1:] = sys.argv[1], sys.argv[2:]
    words = kit.words()
    store = redis.Redis.from_url(os.environ["REDIS_URL"], protocol=2)
    saved = None if spoilt == "asks-anew" else store.get(f"run:{words.run}")
    messages = json.loads(saved) if saved else [kit.user(words.goal)]
    if spoilt == "two-minds" and is_first_ever():
        kit.ask(messages)
    while not kit.is_over(messages):
        for call in kit.unanswered(messages):
            place = f"{words.run}:{kit.turn_of(messages)}:{call.tool}"
            text = kit.tool(call.tool, call.args, place if spoilt != "no-key" else None)
            messages.append(kit.result(call, text))
            store.set(f"run:{words.run}", json.dumps(messages))
        messages.append(kit.ask(messages))
        store.set(f"run:{words.run}", json.dumps(messages))
    return kit.finish(messages[-1]["content"])


def is_first_ever() -> bool:
    """True once, over all runs in this folder."""
    try:
        Path("first-ever").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
