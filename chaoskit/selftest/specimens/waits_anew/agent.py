"""A wait is a key with the time of its end; the run parks until then."""

import json
import os
import time

import redis

from chaoskit.selftest import kit


class Run:
    """One run in Redis: the conversation, and when an open wait is over."""

    def __init__(self, words: kit.Words) -> None:
        self.words = words
        self.store = redis.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )
        saved = self.store.get(f"run:{words.run}")
        self.messages = json.loads(str(saved)) if saved else [kit.user(words.goal)]

    def go(self) -> int:
        """To the end, or to a wait."""
        while not kit.is_over(self.messages):
            for call in kit.unanswered(self.messages):
                self.add(kit.result(call, self.do(call)))
            self.add(kit.ask(self.messages))
        return kit.finish(self.messages[-1]["content"])

    def add(self, message: kit.Message) -> None:
        """One more message, stored with all before it."""
        self.messages.append(message)
        self.store.set(f"run:{self.words.run}", json.dumps(self.messages))

    def do(self, call: kit.Call) -> str:
        """One call; a wait is served here."""
        if call.tool == "wait":
            return self.wait(call.args["seconds"])
        turn = kit.turn_of(self.messages)
        return kit.tool(call.tool, call.args, f"{self.words.run}/{turn}")

    def wait(self, seconds: float) -> str:
        """Park until it is over."""
        name = f"due:{self.words.run}"
        due = self.store.get(name)
        if due is None:
            self.store.set(name, time.time() + seconds)
            kit.park("waiting")
        if time.time() < float(str(due)):
            kit.park("waiting still")
        # The wait is over, and nothing that is stored says so.
        self.store.delete(name)
        return "waited"


def main() -> int:
    """One life."""
    return Run(kit.words()).go()
