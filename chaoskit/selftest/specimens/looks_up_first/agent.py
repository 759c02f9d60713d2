"""For a service that knows no keys: a call that may have been made is looked up first.

State is a file for each run that is replaced as a whole; the id of a checkpoint is in
the file. Without a trace of an earlier attempt nothing is looked up.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from chaoskit.selftest import kit


class Run:
    """One run, and its file."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.path = Path(os.environ["CHAOSKIT_STATE_DIR"], f"{run}.json")
        fresh = {"n": 0, "messages": [], "begun": []}
        there = self.path.exists()
        self.state: dict[str, Any] = (
            json.loads(self.path.read_text()) if there else fresh
        )

    def save(self) -> None:
        """Replace the file."""
        self.state["n"] += 1
        new = self.path.with_name(f"{self.run}.{os.getpid()}.new")
        with new.open("w") as file:
            json.dump(self.state, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)
        self.log("checkpoint")

    def log(self, event: str, **more: Any) -> None:
        """A line, and one for whoever looks for an error."""
        place = (self.run, len(self.state["messages"]), self.state["n"])
        kit.log(event, *place, **more)
        kit.log("trace", *place, level="debug", said=str(self.state["messages"][-1:]))

    def do(self, call: kit.Call) -> str:
        """One call: made once, or found."""
        place = str(len(self.state["messages"]))
        self.log("tool.intent", call=place)
        if place in self.state["begun"]:
            if done := kit.look_up(call.tool, call.args):
                return json.dumps(done[0]["result"])
        else:
            self.state["begun"].append(place)
            self.save()
        return kit.tool(call.tool, call.args)

    def go(self, goal: str) -> int:
        """To the end."""
        messages = self.state["messages"] = self.state["messages"] or [kit.user(goal)]
        while not kit.is_over(messages):
            for call in kit.unanswered(messages):
                place = str(len(messages))
                messages.append(kit.result(call, self.do(call)))
                self.save()
                self.log("tool.result", call=place)
            messages.append(kit.ask(messages))
            self.save()
        return kit.finish(messages[-1]["content"])


def main() -> int:
    """One life, or a look."""
    if sys.argv[1] == "inspect":
        state = Run(sys.argv[2]).state
        shown = {"checkpoint_id": state["n"], "transcript": state["messages"]}
        print(json.dumps(shown))
        return 0
    words = kit.words()
    return Run(words.run).go(words.goal)
