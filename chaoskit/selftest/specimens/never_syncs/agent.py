"""A file that is replaced as a whole, and is durable some time later."""

import json
import os
import sys
from pathlib import Path

from chaoskit.selftest import kit


def load(path: Path) -> list[kit.Message]:
    """What the file says."""
    found = json.loads(path.read_text()) if path.exists() else []
    return [*found]


def save(path: Path, messages: list[kit.Message]) -> None:
    """The name changes at once; the disk hears of it when the system likes."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(messages))
    new.rename(path)


def main() -> int:
    """One life, or a look."""
    folder = Path(os.environ["CHAOSKIT_STATE_DIR"])
    if sys.argv[1] == "inspect":
        messages = load(folder / f"{sys.argv[2]}.json")
        print(json.dumps({"checkpoint_id": len(messages), "transcript": messages}))
        return 0
    words = kit.words()
    path = folder / f"{words.run}.json"
    messages = load(path) or [kit.user(words.goal)]
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            call, key = waiting[0], f"{words.run}/{len(messages)}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
        else:
            messages.append(kit.ask(messages))
        save(path, messages)
        kit.log("checkpoint", words.run, len(messages), len(messages))
    return kit.finish(messages[-1]["content"])
