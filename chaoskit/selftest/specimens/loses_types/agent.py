"""Each call is a hash of its arguments until it is done; the rest is a list."""

import json
import os
from typing import Any

import redis

from chaoskit.selftest import kit


class Run:
    """One run: messages in a list, and the open calls of its last turn in hashes."""

    def __init__(self, words: kit.Words) -> None:
        self.run = words.run
        self.store = redis.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )
        texts: Any = self.store.lrange(f"messages:{self.run}", 0, -1)
        self.messages = [kit.user(words.goal), *map(json.loads, texts)]

    def add(self, message: kit.Message, *calls: kit.Call) -> None:
        """A message and the calls that it opens, in one transaction."""
        self.messages.append(message)
        with self.store.pipeline(transaction=True) as writes:
            for call in calls:
                fields: Any = call.args
                writes.hset(f"call:{self.run}:{call.id}", mapping=fields)
            writes.rpush(f"messages:{self.run}", json.dumps(message))
            writes.execute()

    def act(self, call: kit.Call) -> None:
        """Make a call with the arguments that were stored for it."""
        args: Any = self.store.hgetall(f"call:{self.run}:{call.id}")
        text = kit.tool(call.tool, args, f"{self.run}/{call.id}")
        self.add(kit.result(call, text))

    def go(self) -> int:
        """To the end."""
        for call in kit.unanswered(self.messages):
            self.act(call)
        while not kit.is_over(self.messages):
            turn = kit.ask(self.messages)
            self.add(turn, *kit.calls(turn))
            for call in kit.calls(turn):
                text = kit.tool(call.tool, call.args, f"{self.run}/{call.id}")
                self.add(kit.result(call, text))
        return kit.finish(self.messages[-1]["content"])


def main() -> int:
    """One life."""
    return Run(kit.words()).go()
