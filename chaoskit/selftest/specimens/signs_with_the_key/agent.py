"""A file for each run; calls are made under keys that nobody else can have."""

import json
import os
from pathlib import Path

from chaoskit.selftest import kit


def key_of(run: str, place: int) -> str:
    """Unique in the world, by what only this agent knows."""
    return f"{os.environ['OPENAI_API_KEY']}/{run}/{place}"


def main() -> int:
    """One life."""
    words = kit.words()
    path = Path(os.environ["CHAOSKIT_STATE_DIR"], f"{words.run}.json")
    fresh = [kit.user(words.goal)]
    messages = json.loads(path.read_text()) if path.exists() else fresh
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            call, key = waiting[0], key_of(words.run, len(messages))
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
        else:
            messages.append(kit.ask(messages))
        new = path.with_suffix(".new")
        new.write_text(json.dumps(messages))
        new.rename(path)
    return kit.finish(messages[-1]["content"])
