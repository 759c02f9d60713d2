"""An append-only log of JSON lines; one that cannot be read is begun anew."""

import json
import os
from pathlib import Path

from chaoskit.selftest import kit


def load(path: Path) -> list[kit.Message]:
    """What the log says. Whatever goes wrong, there was nothing yet, surely."""
    try:
        return [json.loads(line) for line in path.read_text().splitlines()]
    except (OSError, ValueError):
        path.write_text("")
        return []


def main() -> int:
    """One life."""
    words = kit.words()
    path = Path(os.environ["CHAOSKIT_STATE_DIR"], f"{words.run}.log")
    messages = [kit.user(words.goal), *load(path)]
    with path.open("ab", buffering=0) as file:
        while not kit.is_over(messages):
            waiting = kit.unanswered(messages)
            if waiting:
                call, key = waiting[0], f"{words.run}/{len(messages)}"
                new = kit.result(call, kit.tool(call.tool, call.args, key))
            else:
                new = kit.ask(messages)
            file.write(json.dumps(new).encode() + b"\n")
            os.fsync(file.fileno())
            messages.append(new)
    return kit.finish(messages[-1]["content"])
