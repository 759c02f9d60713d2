"""A folder of checkpoints with their numbers for names; the last name counts."""

import json
import os
import sys
from pathlib import Path

from chaoskit.selftest import kit


def names(folder: Path) -> list[str]:
    """The checkpoints there, the newest one last, or so it seems: as text, 10 < 9."""
    return sorted(path.stem for path in folder.glob("*.json"))


def load(folder: Path) -> list[kit.Message]:
    """What the newest one holds."""
    found = names(folder)
    if not found:
        return []
    messages: list[kit.Message] = json.loads((folder / f"{found[-1]}.json").read_text())
    return messages


def save(folder: Path, messages: list[kit.Message]) -> None:
    """A new file; older ones stay, for whoever wants to look back."""
    new = folder / "new"
    new.write_text(json.dumps(messages))
    new.rename(folder / f"{len(messages)}.json")


def main() -> int:
    """One life, or a look."""
    root = Path(os.environ["CHAOSKIT_STATE_DIR"])
    if sys.argv[1] == "inspect":
        messages = load(root / sys.argv[2])
        print(json.dumps({"checkpoint_id": len(messages), "transcript": messages}))
        return 0
    words = kit.words()
    folder = root / words.run
    folder.mkdir(exist_ok=True)
    messages = load(folder) or [kit.user(words.goal)]
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            call, key = waiting[0], f"{words.run}/{len(messages)}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
        else:
            messages.append(kit.ask(messages))
        save(folder, messages)
        kit.log("checkpoint", words.run, len(messages), len(messages))
    return kit.finish(messages[-1]["content"])
