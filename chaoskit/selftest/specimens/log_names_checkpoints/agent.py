"""A file for each checkpoint, under a random name; another says which is the newest."""

import json
import os
import sys
import uuid
from pathlib import Path

from chaoskit.selftest import kit


class Run:
    """One run."""

    def __init__(self, words: kit.Words) -> None:
        self.words = words
        self.folder = Path(os.environ["CHAOSKIT_STATE_DIR"])
        self.newest = self.folder / "newest"
        self.name = self.newest.read_text() if self.newest.exists() else ""
        self.messages: list[kit.Message] = [kit.user(words.goal)]
        if self.name:
            self.messages = json.loads((self.folder / self.name).read_text())

    def log(self, event: str, **more: str) -> None:
        """One line; the checkpoint is named as it is in the folder."""
        line = {"level": "info", "event": event, "run_id": self.words.run}
        line |= {"step": str(len(self.messages)), **more}
        print(json.dumps({**line, "checkpoint_id": self.name}), file=sys.stderr)

    def add(self, message: kit.Message) -> None:
        """A file of its own, and then its name in place of the one before."""
        self.messages.append(message)
        name, new = uuid.uuid4().hex, self.folder / "newest.new"
        (self.folder / name).write_text(json.dumps(self.messages))
        new.write_text(name)
        new.rename(self.newest)
        self.name = name
        self.log("run.checkpoint")

    def act(self, call: kit.Call) -> None:
        """One call, under the name that the model gave it."""
        self.log("tool.intent", call=call.id)
        text = kit.tool(call.tool, call.args, f"{self.words.run}/{call.id}")
        self.log("tool.result", call=call.id)
        self.add(kit.result(call, text))


def main() -> int:
    """One life."""
    run = Run(kit.words())
    run.log("run.start")
    while not kit.is_over(run.messages):
        for call in kit.unanswered(run.messages):
            run.act(call)
        run.add(kit.ask(run.messages))
    run.log("run.end")
    return kit.finish(run.messages[-1]["content"])
