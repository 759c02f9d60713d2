"""A table of calls: each is noted as begun, made, and noted as done."""

import json
import os
import sqlite3

from chaoskit.selftest import kit

TABLES = """
CREATE TABLE IF NOT EXISTS turns (n INTEGER PRIMARY KEY, message TEXT);
CREATE TABLE IF NOT EXISTS calls (id TEXT PRIMARY KEY, result TEXT);
"""


class Store:
    """What was said, and what came of each call."""

    def __init__(self) -> None:
        path = os.path.join(os.environ["CHAOSKIT_STATE_DIR"], "agent.db")
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        there = self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'calls'")
        if there.fetchone() is None:
            self.db.executescript(f"BEGIN; {TABLES} COMMIT")

    def turns(self) -> list[kit.Message]:
        """The model's turns, in order."""
        rows = self.db.execute("SELECT message FROM turns ORDER BY n").fetchall()
        return [json.loads(text) for (text,) in rows]

    def add(self, message: kit.Message) -> None:
        """One more turn."""
        text = json.dumps(message)
        self.db.execute("INSERT INTO turns (message) VALUES (?)", (text,))

    def is_new(self, call: kit.Call) -> bool:
        """Note that it begins; False if that was noted before."""
        words = "INSERT OR IGNORE INTO calls VALUES (?, NULL)"
        return self.db.execute(words, (call.id,)).rowcount == 1

    def result(self, call: kit.Call) -> str | None:
        """What came of it, if that is known."""
        rows = self.db.execute("SELECT result FROM calls WHERE id = ?", (call.id,))
        row = rows.fetchone()
        return row[0] if row else None

    def settle(self, call: kit.Call, result: str) -> str:
        """Note what came of it."""
        words = "UPDATE calls SET result = ? WHERE id = ?"
        self.db.execute(words, (result, call.id))
        return result


def act(store: Store, call: kit.Call) -> str:
    """Make the call, unless it was made; whether it was, the service must know."""
    if (known := store.result(call)) is not None:
        return known
    if not store.is_new(call) and (made := kit.look_up(call.tool, {})):
        return store.settle(call, json.dumps(made[0]["result"]))
    return store.settle(call, kit.tool(call.tool, call.args))


def main() -> int:
    """One life."""
    words, store = kit.words(), Store()
    while True:
        messages = [kit.user(words.goal)]
        for turn in store.turns():
            results = [kit.result(call, act(store, call)) for call in kit.calls(turn)]
            messages += [turn, *results]
        if kit.is_over(messages):
            return kit.finish(messages[-1]["content"])
        store.add(kit.ask(messages))
