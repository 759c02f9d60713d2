"""Event-sourced in SQLite, with a rollback journal: the run is what its events say."""

import json
import os
import sqlite3
from typing import Any

from chaoskit.selftest import kit

TABLE = """
CREATE TABLE IF NOT EXISTS events
    (run TEXT, n INTEGER, kind TEXT, body TEXT, PRIMARY KEY (run, n))
"""


class Events:
    """The events of one run, in their order."""

    def __init__(self, run: str) -> None:
        self.run = run
        path = os.path.join(os.environ["CHAOSKIT_STATE_DIR"], "agent.db")
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA synchronous = EXTRA")
        self.db.execute(TABLE)

    def all(self) -> list[tuple[str, Any]]:
        """Kind and body of each."""
        asked = "SELECT kind, body FROM events WHERE run = ? ORDER BY n"
        rows = self.db.execute(asked, (self.run,)).fetchall()
        return [(kind, json.loads(body)) for kind, body in rows]

    def add(self, n: int, kind: str, body: Any) -> None:
        """The one of that number; it is an error if that is there."""
        row = (self.run, n, kind, json.dumps(body))
        self.db.execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)


def decide(events: list[tuple[str, Any]]) -> tuple[str, Any]:
    """The next event, found by doing what is next."""
    messages = [body for kind, body in events if kind in ("goal", "said", "told")]
    for call in kit.unanswered(messages):
        key = f"{len(messages)}-{call.tool}"
        if events[-1] != ("sends", key):
            return "sends", key
        return "told", kit.result(call, kit.tool(call.tool, call.args, key))
    return "said", kit.ask(messages)


def main() -> int:
    """One life."""
    words = kit.words()
    store = Events(words.run)
    while True:
        events = store.all()
        if not events:
            store.add(0, "goal", kit.user(words.goal))
        elif events[-1][0] == "said" and not kit.calls(events[-1][1]):
            return kit.finish(events[-1][1]["content"])
        else:
            store.add(len(events), *decide(events))
