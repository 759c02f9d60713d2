"""A list in Redis of all that was said, but for the words by which it began."""

import json
import os
from typing import Any

import redis

from chaoskit.selftest import kit


def main() -> int:
    """One life."""
    words = kit.words()
    db: Any = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
    said = [json.loads(text) for text in db.lrange(words.run, 0, -1)]

    def add(message: kit.Message) -> None:
        db.rpush(words.run, json.dumps(message))
        said.append(message)

    first = kit.user("Continue." if words.resumed and said else words.goal)
    while not (said and kit.is_over(said)):
        for call in kit.unanswered(said):
            key = f"{words.run}/{kit.turn_of(said)}"
            add(kit.result(call, kit.tool(call.tool, call.args, key)))
        add(kit.ask([first, *said]))
    return kit.finish(said[-1]["content"])
