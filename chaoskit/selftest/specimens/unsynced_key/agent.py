"""Keys are drawn at random and stored before they are used; turns are synced."""

import json
import os
import uuid
from pathlib import Path
from typing import Any

from chaoskit.selftest import kit


class Folder:
    """The files of one run."""

    def __init__(self, run: str) -> None:
        self.path = Path(os.environ["CHAOSKIT_STATE_DIR"], run)
        self.path.mkdir(exist_ok=True)
        self.sync(self.path.parent)
        self.sync(self.path)

    def sync(self, path: Path) -> None:
        """Make a file's content durable, or the names in a folder."""
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    def read(self, name: str) -> Any:
        """What is there, or None."""
        path = self.path / name
        text = path.read_text() if path.exists() else ""
        return json.loads(text) if text else None

    def messages(self, goal: str) -> list[kit.Message]:
        """The conversation."""
        found: list[kit.Message] = self.read("messages") or [kit.user(goal)]
        return found

    def save(self, messages: list[kit.Message]) -> None:
        """Durable once it returns."""
        new = self.path / "new"
        new.write_text(json.dumps(messages))
        self.sync(new)
        new.rename(self.path / "messages")
        self.sync(self.path)

    def key(self, place: int) -> str:
        """Small and soon of no use: so this one is only written."""
        name = f"key-{place}"
        found = self.read(name)
        if found is None:
            found = str(uuid.uuid4())
            (self.path / name).write_text(json.dumps(found))
        return str(found)


def main() -> int:
    """One life."""
    words = kit.words()
    folder = Folder(words.run)
    messages = folder.messages(words.goal)
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            call, key = waiting[0], folder.key(len(messages))
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
        else:
            messages.append(kit.ask(messages))
        folder.save(messages)
    return kit.finish(messages[-1]["content"])
