"""For a service without keys or look-ups: what is in doubt, a person decides.

Two tables: what was said, and what a call was about to be.
"""

import json
import os
import sqlite3

from chaoskit.selftest import kit

TABLES = (
    "CREATE TABLE IF NOT EXISTS said (n INTEGER PRIMARY KEY, message TEXT)",
    "CREATE TABLE IF NOT EXISTS intents (n INTEGER PRIMARY KEY, since TEXT)",
)


def main() -> int:
    """One life."""
    words = kit.words()
    path = os.path.join(os.environ["CHAOSKIT_STATE_DIR"], f"{words.run}.db")
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    for table in TABLES:
        db.execute(table)
    rows = db.execute("SELECT message FROM said ORDER BY n").fetchall()
    messages = [kit.user(words.goal), *(json.loads(text) for (text,) in rows)]
    while not kit.is_over(messages):
        n, waiting = len(messages), kit.unanswered(messages)
        if waiting:
            begun = db.execute("SELECT since FROM intents WHERE n = ?", (n,)).fetchone()
            if begun is not None:
                kit.park(f"call {n} was begun at {begun[0]}; somebody has to look")
            db.execute("INSERT INTO intents VALUES (?, datetime('now'))", (n,))
            new = kit.result(waiting[0], kit.tool(waiting[0].tool, waiting[0].args))
        else:
            new = kit.ask(messages)
        db.execute("INSERT INTO said VALUES (?, ?)", (n, json.dumps(new)))
        messages.append(new)
    return kit.finish(messages[-1]["content"])
