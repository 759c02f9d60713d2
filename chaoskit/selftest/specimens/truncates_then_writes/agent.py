"""A file for each run, written over in place."""

import json
import os
import sys
from pathlib import Path

from chaoskit.selftest import kit


def load(path: Path) -> list[kit.Message]:
    """What the file says; one that cannot be read ends the run, in words."""
    if not path.exists():
        return []
    try:
        messages: list[kit.Message] = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        kit.fail(f"the checkpoint {path.name} cannot be read: {error}")
    return messages


def create(path: Path, messages: list[kit.Message]) -> None:
    """A run is there as a whole, or not yet."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(messages))
    new.rename(path)


def save(path: Path, messages: list[kit.Message]) -> None:
    """Opening it for writing empties it first."""
    with path.open("w") as file:
        json.dump(messages, file)
        file.flush()
        os.fsync(file.fileno())


def main() -> int:
    """One life, or a look."""
    folder = Path(os.environ["CHAOSKIT_STATE_DIR"])
    if sys.argv[1] == "inspect":
        messages = load(folder / f"{sys.argv[2]}.json")
        print(json.dumps({"checkpoint_id": len(messages), "transcript": messages}))
        return 0
    words = kit.words()
    path = folder / f"{words.run}.json"
    messages = load(path)
    if not messages:
        messages = [kit.user(words.goal)]
        create(path, messages)
        kit.log("checkpoint", words.run, 1, 1)
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
