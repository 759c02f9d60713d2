"""A list in Redis holds the conversation, one message an entry; keys are hashes."""

import hashlib
import json
import os

import redis

from chaoskit.selftest import kit


class Conversation:
    """Messages, appended one at a time."""

    def __init__(self, run: str, goal: str) -> None:
        self.name = f"messages:{run}"
        self.store = redis.Redis.from_url(os.environ["REDIS_URL"], protocol=2)
        texts = self.store.lrange(self.name, 0, -1)
        assert isinstance(texts, list)
        self.messages = [kit.user(goal), *map(json.loads, texts)]

    def append(self, message: kit.Message) -> None:
        """Durable once it returns."""
        self.store.rpush(self.name, json.dumps(message))
        self.messages.append(message)


def key_of(run: str, call: kit.Call) -> str:
    """The same for the same call, and for every call that looks like it."""
    text = json.dumps([run, call.tool, call.args], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def main() -> int:
    """One life."""
    words = kit.words()
    talk = Conversation(words.run, words.goal)
    while not kit.is_over(talk.messages):
        for call in kit.unanswered(talk.messages):
            text = kit.tool(call.tool, call.args, key_of(words.run, call))
            talk.append(kit.result(call, text))
        talk.append(kit.ask(talk.messages))
    return kit.finish(talk.messages[-1]["content"])
