"""Each effect is done and then noted; a life that dies in between does it again."""

import json
import os

import redis

from chaoskit.selftest import kit


def main() -> int:
    """One life, from the last note to the end."""
    words = kit.words()
    store = redis.Redis.from_url(os.environ["REDIS_URL"], protocol=2)
    messages = load(store, words)
    while not kit.is_over(messages):
        for call in kit.unanswered(messages):
            text = kit.tool(call.tool, call.args)
            # Here: it has acted, and nothing shows it.
            messages.append(kit.result(call, text))
            save(store, words.run, messages)
        messages.append(kit.ask(messages))
        save(store, words.run, messages)
    return kit.finish(messages[-1]["content"])


def load(store: redis.Redis, words: kit.Words) -> list[kit.Message]:
    """The conversation as it was saved, or a new one."""
    saved = store.get(f"run:{words.run}")
    assert saved is None or isinstance(saved, bytes)
    return [kit.user(words.goal)] if saved is None else json.loads(saved)


def save(store: redis.Redis, run: str, messages: list[kit.Message]) -> None:
    """Replace the conversation, in one write."""
    store.set(f"run:{run}", json.dumps(messages))
