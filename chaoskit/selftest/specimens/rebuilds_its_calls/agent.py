"""A journal in Redis: the model's message until its calls are done, then less of it."""

import json
import os
from typing import Any

import redis

from chaoskit.selftest import kit


def main() -> int:
    """One life."""
    words = kit.words()
    db: Any = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
    said = [kit.user(words.goal), *map(json.loads, db.lrange(words.run, 0, -1))]

    def add(*messages: kit.Message) -> None:
        said.extend(messages)
        db.rpush(words.run, *map(json.dumps, messages))

    while not kit.is_over(said):
        for call in kit.unanswered(said):
            key = f"{words.run}/{kit.turn_of(said)}"
            done = kit.result(call, kit.tool(call.tool, call.args, key))
            said.append(done)
            kept = [json.dumps(without_arguments(said[-2])), json.dumps(done)]
            db.pipeline().ltrim(words.run, 0, -2).rpush(words.run, *kept).execute()
        add(kit.ask(said))
    return kit.finish(said[-1]["content"])


def without_arguments(message: kit.Message) -> kit.Message:
    """What is kept of a call that is done."""
    calls = [dict(each) for each in message["tool_calls"]]
    for call in calls:
        call["function"] = {"name": call["function"]["name"], "arguments": "{}"}
    return {**message, "tool_calls": calls}
