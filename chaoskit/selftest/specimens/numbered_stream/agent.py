"""A stream in Redis whose entries have numbers of our own.

The client sends a command again when its answer is lost; an entry whose number is taken
is refused, so that whoever reads it back finds out whether it was its own.
"""

import json
import os
import uuid
from typing import Any

import redis

from chaoskit.selftest import kit


class Stream:
    """The entries of one run."""

    def __init__(self, run: str) -> None:
        self.name = f"{{{run}}}:entries"
        self.store = redis.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )

    def messages(self) -> list[kit.Message]:
        """All of them, oldest first."""
        found: Any = self.store.xrange(self.name)
        return [json.loads(fields["message"]) for _, fields in found]

    def add(self, number: int, message: kit.Message) -> None:
        """The one of that number, from 1, if nobody else has written it."""
        entry: Any = {"message": json.dumps(message), "by": uuid.uuid4().hex}
        try:
            self.store.xadd(self.name, entry, id=f"{number}-0")
        except redis.ResponseError:
            found: Any = self.store.xrange(self.name, f"{number}-0", f"{number}-0")
            if [fields["by"] for _, fields in found] != [entry["by"]]:
                raise


def main() -> int:
    """One life."""
    words = kit.words()
    stream = Stream(words.run)
    messages = [kit.user(words.goal), *stream.messages()]
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            call, key = waiting[0], f"{words.run}#{len(messages)}"
            new = kit.result(call, kit.tool(call.tool, call.args, key))
        else:
            new = kit.ask(messages)
        stream.add(len(messages), new)
        messages.append(new)
    return kit.finish(messages[-1]["content"])
