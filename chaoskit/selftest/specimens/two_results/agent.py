"""A log of events in a file: messages, and calls that are waiting to be made."""

import json
import os
from pathlib import Path
from typing import Any

from chaoskit.selftest import kit


class Session:
    """One run, read back from its lines."""

    def __init__(self, path: Path, goal: str) -> None:
        self.messages: list[kit.Message] = [kit.user(goal)]
        self.waiting: list[kit.Call] = []
        lines = path.read_text().splitlines() if path.exists() else []
        for line in lines:
            self.take(json.loads(line))
        self.file = path.open("a")

    def add(self, message: kit.Message) -> None:
        """Write a message down, and take it in."""
        self.file.write(json.dumps(message) + "\n")
        self.file.flush()
        self.take(message)

    def take(self, message: Any) -> None:
        """A turn's calls wait until they are made."""
        self.messages.append(message)
        self.waiting += kit.calls(message)
        if message["role"] == "tool" and message["content"] != INTERRUPTED:
            done = message["tool_call_id"]
            self.waiting = [call for call in self.waiting if call.id != done]


INTERRUPTED = "This call was interrupted."


def main() -> int:
    """One life."""
    words = kit.words()
    session = Session(Path(os.environ["CHAOSKIT_STATE_DIR"]) / "log", words.goal)
    for call in kit.unanswered(session.messages):
        session.add(kit.result(call, INTERRUPTED))
    while not kit.is_over(session.messages):
        for call in list(session.waiting):
            text = kit.tool(call.tool, call.args, f"{words.run}/{call.id}")
            session.add(kit.result(call, text))
        session.add(kit.ask(session.messages))
    return kit.finish(session.messages[-1]["content"])
