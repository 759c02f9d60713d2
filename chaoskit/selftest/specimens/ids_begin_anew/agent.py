"""An append-only list of checkpoints; what they are called is counted in memory."""

import json
import os
import sys
from typing import Any

import redis

from chaoskit.selftest import kit


def newest(store: redis.Redis, run: str) -> Any:
    """The checkpoint that was appended last."""
    found: Any = store.lindex(f"checkpoints:{run}", -1)
    return json.loads(found) if found else {"checkpoint_id": 0, "transcript": []}


def main() -> int:
    """One life, or a look."""
    store = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
    if sys.argv[1] == "inspect":
        print(json.dumps(newest(store, sys.argv[2])))
        return 0
    words = kit.words()
    messages = newest(store, words.run)["transcript"] or [kit.user(words.goal)]
    number = 0  # and not that of the one that was found
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            call, key = waiting[0], f"{words.run}/{len(messages)}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
        else:
            messages.append(kit.ask(messages))
        number += 1
        checkpoint = {"checkpoint_id": number, "transcript": messages}
        store.rpush(f"checkpoints:{words.run}", json.dumps(checkpoint))
    return kit.finish(messages[-1]["content"])
