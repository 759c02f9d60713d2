"""A folder of numbered files, a message in each; mail goes out by SMTP."""

import email.utils
import json
import os
from pathlib import Path

from chaoskit.selftest import kit


class Folder:
    """The conversation, a file a message: written whole, then given its number."""

    def __init__(self, path: Path, goal: str) -> None:
        self.path = path
        names = sorted(path.glob("*.json"))
        self.messages = [kit.user(goal), *(json.loads(n.read_text()) for n in names)]

    def add(self, message: kit.Message) -> None:
        """One more."""
        new = self.path / "new"
        new.write_text(json.dumps(message))
        new.rename(self.path / f"{len(self.messages):06}.json")
        self.messages.append(message)


def main() -> int:
    """One life."""
    words = kit.words()
    talk = Folder(Path(os.environ["CHAOSKIT_STATE_DIR"]), words.goal)
    while not kit.is_over(talk.messages):
        for call in kit.unanswered(talk.messages):
            # The library makes it of the time and of chance.
            kit.mail(**call.args, message_id=email.utils.make_msgid("agent"))
            talk.add(kit.result(call, "sent"))
        talk.add(kit.ask(talk.messages))
    return kit.finish(talk.messages[-1]["content"])
