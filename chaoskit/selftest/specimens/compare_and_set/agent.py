"""A hash in Redis, changed by a script that refuses whoever has seen an older one."""

import json
import os
import sys
from typing import Any

import redis

from chaoskit.selftest import kit

SAVE = """
local version = tonumber(redis.call('HGET', KEYS[1], 'version') or '0')
if version ~= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'version', version + 1, 'status', ARGV[2],
    'messages', ARGV[3])
return 1
"""


class Run:
    """One run, as this life has seen it."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.store = redis.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )
        found: Any = self.store.hgetall(f"run:{run}")
        self.version = int(found.get("version", 0))
        self.status = found.get("status")
        self.messages: list[kit.Message] = json.loads(found.get("messages", "[]"))

    def add(self, message: kit.Message, status: str = "running") -> None:
        """Save it behind the others, unless another life was faster."""
        messages = [*self.messages, message]
        words = (self.version, status, json.dumps(messages))
        if not self.store.eval(SAVE, 1, f"run:{self.run}", *words):
            raise SystemExit("another life goes on with the run")
        self.version, self.messages = self.version + 1, messages

    def step(self) -> None:
        """One call, or the next turn."""
        for call in kit.unanswered(self.messages):
            key = f"{self.run}:{len(self.messages)}"
            self.add(kit.result(call, kit.tool(call.tool, call.args, key)))
            return
        said = kit.ask(self.messages)
        self.add(said, "running" if kit.calls(said) else "done")


def main() -> int:
    """One life, or a look."""
    if sys.argv[1] == "inspect":
        seen = Run(sys.argv[2])
        shown = {"checkpoint_id": seen.version, "status": seen.status}
        print(json.dumps({**shown, "transcript": seen.messages}))
        return 0
    words = kit.words()
    run = Run(words.run)
    if not run.messages:
        run.add(kit.user(words.goal))
    while not kit.is_over(run.messages):
        run.step()
    return kit.finish(run.messages[-1]["content"])
