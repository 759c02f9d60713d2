"""One row of SQLite holds the run, and much that is another value each time."""

import json
import os
import sqlite3
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from chaoskit.selftest import kit

TABLE = "CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, state TEXT)"


def path() -> Path:
    """Where the database is."""
    return Path(os.environ["CHAOSKIT_STATE_DIR"], "agent.db")


class Run:
    """One run; each save is a transaction."""

    def __init__(self, words: kit.Words) -> None:
        self.run = words.run
        self.db = sqlite3.connect(path(), isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute(TABLE)
        self.state: dict[str, Any] = load(self.db, self.run) or {
            "n": 0,
            "messages": [kit.user(words.goal)],
            "attempts": {},
            "lives": 0,
        }
        self.state["lives"] += 1
        self.log("run.resume" if words.resumed else "run.start")

    @property
    def messages(self) -> list[kit.Message]:
        """The conversation."""
        found: list[kit.Message] = self.state["messages"]
        return found

    def log(self, event: str, **more: Any) -> None:
        """A line, and noise around it."""
        kit.log(event, self.run, len(self.messages), self.state["n"], **more)
        print(f"pid {os.getpid()}: {time.monotonic_ns()} {event}", file=sys.stderr)

    def save(self, **noise: Any) -> None:
        """The state, and when and by whom."""
        state = {**self.state, "n": self.state["n"] + 1, "at": time.time(), **noise}
        row = (self.run, json.dumps(state | {"nonce": uuid.uuid4().hex}))
        self.db.execute("INSERT OR REPLACE INTO runs VALUES (?, ?)", row)
        self.state = state
        self.log("checkpoint")

    def do(self, place: str, call: kit.Call) -> None:
        """One call; how often it was tried is stored before."""
        attempts = self.state["attempts"]
        attempts[place] = attempts.get(place, 0) + 1
        self.save()
        self.log("tool.intent", call=place)
        text = kit.tool(call.tool, call.args, f"{self.run}/{place}")
        self.messages.append(kit.result(call, text))
        self.save(last=place)
        self.log("tool.result", call=place)

    def go(self) -> int:
        """To the end."""
        while not kit.is_over(self.messages):
            for call in kit.unanswered(self.messages):
                turn = kit.turn_of(self.messages)
                self.do(f"{turn}/{call.tool}", call)
            self.log("model.start")
            said = kit.ask(self.messages)
            self.log("model.end")
            self.messages.append(said)
            self.save()
        self.log("run.end")
        return kit.finish(self.messages[-1]["content"])


def load(db: sqlite3.Connection, run: str) -> Any:
    """The newest state, or None."""
    found = db.execute("SELECT state FROM runs WHERE run = ?", (run,)).fetchone()
    return json.loads(found[0]) if found else None


def inspect(run: str) -> int:
    """Print what the next life would read."""
    state: Any = None
    if path().exists():
        # Not read-only: a journal that was left has to be rolled back before.
        with sqlite3.connect(path()) as db:
            tables = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'")
            state = load(db, run) if tables.fetchone() else None
    state = state or {"n": 0, "messages": []}
    shown = {"checkpoint_id": state["n"], "transcript": state["messages"]}
    print(json.dumps(shown))
    return 0


def main() -> int:
    """One life, or a look."""
    if sys.argv[1] == "inspect":
        return inspect(sys.argv[2])
    return Run(kit.words()).go()
