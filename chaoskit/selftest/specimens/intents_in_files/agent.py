"""Files that are written once: an intent with its key, a result, a turn.

Each has its name only once its content is durable, and the folder is synced behind it.
The key of a call is drawn at random and stored with the intent, before it is used.
"""

import json
import os
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from chaoskit.selftest import kit


def sync(path: Path) -> None:
    """Make a file's content durable, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Folder:
    """What is known of one run."""

    def __init__(self, run: str) -> None:
        self.path = Path(os.environ["CHAOSKIT_STATE_DIR"], run)

    def open(self) -> None:
        """Make it, and make durable what a life before has left in it."""
        self.path.mkdir(exist_ok=True)
        sync(self.path)
        sync(self.path.parent)

    def read(self, name: str) -> Any:
        """What was put there, or None."""
        try:
            return json.loads((self.path / f"{name}.json").read_text())
        except FileNotFoundError:
            return None

    def put(self, name: str, value: Any) -> Any:
        """Durable once it returns; the value is handed back."""
        new = self.path / f"{name}.new"
        with new.open("w") as file:
            file.write(json.dumps(value))
            file.flush()
            os.fsync(file.fileno())
        new.rename(self.path / f"{name}.json")
        sync(self.path)
        return value

    def messages(self) -> tuple[list[kit.Message], int]:
        """The conversation so far, and how many files it is made of."""
        messages: list[kit.Message] = []
        files = turn = 0
        while (said := self.read(f"turn-{turn}")) is not None:
            messages.append(said)
            files += 1
            for position, call in enumerate(kit.calls(said)):
                told = self.read(f"result-{turn}-{position}")
                if told is not None:
                    messages.append(kit.result(call, told))
                    files += 1
            turn += 1
        return messages, files


def do(folder: Folder, turn: int, position: int, call: kit.Call) -> None:
    """One call, under the key of its intent."""
    place = f"{turn}-{position}"
    intent = folder.read(f"intent-{place}") or folder.put(
        f"intent-{place}", {"key": str(uuid.uuid4()), "at": time.time()}
    )
    folder.put(f"result-{place}", kit.tool(call.tool, call.args, intent["key"]))


def go(folder: Folder, goal: str) -> str:
    """From where the files end to the last word."""
    while True:
        messages, _ = folder.messages()
        if messages and kit.is_over(messages):
            return str(messages[-1]["content"])
        waiting = kit.unanswered(messages)
        turn = kit.turn_of(messages)
        if waiting:
            done = len(kit.calls(messages[-1 - _results(messages)])) - len(waiting)
            do(folder, turn, done, waiting[0])
        else:
            said = kit.ask([kit.user(goal), *messages])
            folder.put(f"turn-{turn + 1}", said)


def _results(messages: list[kit.Message]) -> int:
    """How many results stand at the end."""
    count = 0
    while messages[-1 - count]["role"] == "tool":
        count += 1
    return count


def main() -> int:
    """One life, or a look."""
    if sys.argv[1] == "inspect":
        messages, files = Folder(sys.argv[2]).messages()
        print(json.dumps({"checkpoint_id": files, "transcript": messages}))
        return 0
    words = kit.words()
    folder = Folder(words.run)
    folder.open()
    return kit.finish(go(folder, words.goal))
