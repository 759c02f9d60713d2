"""Two people's decisions: an answer is stored for its own gate before it is used."""

import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

from chaoskit.selftest import kit

TABLES = """
CREATE TABLE IF NOT EXISTS messages (n INTEGER PRIMARY KEY, message TEXT);
CREATE TABLE IF NOT EXISTS answers (call TEXT PRIMARY KEY, answer TEXT)
"""
GATE = "ask_human"


class Run:
    """One run; the database holds no other."""

    def __init__(self, run: str) -> None:
        path = Path(os.environ["CHAOSKIT_STATE_DIR"], f"{run}.db")
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA synchronous = EXTRA")
        for table in TABLES.split(";"):
            self.db.execute(table)

    def messages(self) -> list[kit.Message]:
        """The conversation."""
        rows = self.db.execute("SELECT message FROM messages ORDER BY n").fetchall()
        return [json.loads(message) for (message,) in rows]

    def add(self, n: int, message: kit.Message) -> None:
        """One more, in its place."""
        row = (n, json.dumps(message))
        self.db.execute("INSERT INTO messages VALUES (?, ?)", row)

    def answer_to(self, call: kit.Call) -> str | None:
        """What was answered at a gate."""
        asked = "SELECT answer FROM answers WHERE call = ?"
        row = self.db.execute(asked, (call.id,)).fetchone()
        return None if row is None else str(row[0])

    def take(self, answer: str) -> None:
        """An answer belongs to the gate that is open, and that is shut by it."""
        for call in kit.unanswered(self.messages()):
            if call.tool == GATE and self.answer_to(call) is None:
                self.db.execute("INSERT INTO answers VALUES (?, ?)", (call.id, answer))
                return

    def do(self, run: str, n: int, call: kit.Call) -> str:
        """One call; a gate without an answer parks the run."""
        if call.tool != GATE:
            return kit.tool(call.tool, call.args, f"{run}/{n}")
        answer = self.answer_to(call)
        if answer is None:
            kit.park("waiting for a person")
        return answer


def inspect(run: Run) -> int:
    """Print what the next life would read."""
    messages = run.messages()
    answers: Any = run.db.execute("SELECT count(*) FROM answers").fetchone()
    shown = {"checkpoint_id": len(messages) + answers[0], "transcript": messages}
    print(json.dumps(shown))
    return 0


def main() -> int:
    """One life, or a look."""
    if sys.argv[1] == "inspect":
        return inspect(Run(sys.argv[2]))
    words = kit.words()
    run = Run(words.run)
    if words.answer is not None:
        run.take(words.answer)
    if not run.messages():
        run.add(0, kit.user(words.goal))
    while not kit.is_over(messages := run.messages()):
        n = len(messages)
        for call in kit.unanswered(messages)[:1]:
            run.add(n, kit.result(call, run.do(words.run, n, call)))
            break
        else:
            run.add(n, kit.ask(messages))
    return kit.finish(messages[-1]["content"])
