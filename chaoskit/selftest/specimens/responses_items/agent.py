"""The Responses API without the provider's memory: the agent keeps all items itself."""

import json
import os
import sqlite3
from typing import Any

from chaoskit.selftest import kit

TABLE = """
CREATE TABLE IF NOT EXISTS items
    (run TEXT, n INTEGER, item TEXT, seen_at REAL DEFAULT (julianday('now')),
     PRIMARY KEY (run, n))
"""
Item = dict[str, Any]


class Items:
    """The items of one run."""

    def __init__(self, run: str, goal: str) -> None:
        self.run = run
        path = os.path.join(os.environ["CHAOSKIT_STATE_DIR"], "agent.db")
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute(TABLE)
        asked = "SELECT item FROM items WHERE run = ? ORDER BY n"
        rows = self.db.execute(asked, (run,)).fetchall()
        self.all: list[Item] = [json.loads(item) for (item,) in rows]
        if not self.all:
            self.add([{"role": "user", "content": goal}])

    def add(self, items: list[Item]) -> None:
        """All of them or none."""
        rows = [
            (self.run, n, json.dumps(item))
            for n, item in enumerate(items, len(self.all))
        ]
        insert = "INSERT INTO items (run, n, item) VALUES (?, ?, ?)"
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(insert, rows)
        self.db.execute("COMMIT")
        self.all += items

    def open_call(self) -> Item | None:
        """The first call that has no output yet."""
        outputs = [i for i in self.all if i.get("type") == "function_call_output"]
        told = {item["call_id"] for item in outputs}
        calls = (i for i in self.all if i.get("type") == "function_call")
        return next((call for call in calls if call["call_id"] not in told), None)


def ask(items: list[Item]) -> list[Item]:
    """What the model answers with."""
    url = f"{os.environ['OPENAI_BASE_URL']}/responses"
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    body = {"model": "any", "input": items, "store": False}
    reply = kit.post(url, body, headers)
    if reply["status"] != "completed":
        raise SystemExit(f"the response is {reply['status']}")
    output: list[Item] = reply["output"]
    return output


def main() -> int:
    """One life."""
    words = kit.words()
    items = Items(words.run, words.goal)
    while items.all[-1].get("type") != "message":
        call = items.open_call()
        if call is None:
            items.add(ask(items.all))
            continue
        key = f"{words.run}.{len(items.all)}"
        done = kit.tool(call["name"], json.loads(call["arguments"]), key)
        told = {"type": "function_call_output", "call_id": call["call_id"]}
        items.add([{**told, "output": done}])
    return kit.finish(items.all[-1]["content"][0]["text"])
