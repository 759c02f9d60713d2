"""One row holds the run: what was said, what has to be called, what has come of it."""

import json
import os
import sqlite3
from typing import Any

from chaoskit.selftest import kit

TABLE = "CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, state TEXT)"


class Run:
    """The state of one run."""

    def __init__(self, words: kit.Words) -> None:
        self.run = words.run
        path = os.path.join(os.environ["CHAOSKIT_STATE_DIR"], "agent.db")
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute(TABLE)
        row = self.db.execute("SELECT state FROM runs WHERE run = ?", (self.run,))
        saved = row.fetchone()
        fresh = {"messages": [kit.user(words.goal)], "open": [], "results": []}
        self.state: dict[str, Any] = json.loads(saved[0]) if saved else fresh

    def save(self) -> None:
        """In one transaction."""
        row = (self.run, json.dumps(self.state))
        self.db.execute("INSERT OR REPLACE INTO runs VALUES (?, ?)", row)

    def do(self, which: int) -> None:
        """Make an open call."""
        call = kit.Call(**self.state["open"].pop(which))
        text = kit.tool(call.tool, call.args, f"{self.run}/{call.id}")
        self.state["results"].append(text)
        self.save()

    def ask(self) -> None:
        """Tell the results by position, and have the next turn."""
        messages = self.state["messages"]
        told = zip(kit.unanswered(messages), self.state["results"], strict=True)
        messages += [kit.result(call, text) for call, text in told]
        messages.append(kit.ask(messages))
        self.state["open"] = [vars(call) for call in kit.calls(messages[-1])]
        self.state["results"] = []
        self.save()


def main() -> int:
    """One life."""
    run = Run(kit.words())
    while run.state["open"]:
        run.do(-1)
    while not kit.is_over(run.state["messages"]):
        while run.state["open"]:
            run.do(0)
        run.ask()
    return kit.finish(run.state["messages"][-1]["content"])
