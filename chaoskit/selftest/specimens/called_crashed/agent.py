"""A row says how a run stands; whoever finds it running takes it for lost."""

import json
import os

import psycopg

from chaoskit.selftest import kit

TABLE = """
CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, status TEXT, messages TEXT)
"""
START = "INSERT INTO runs VALUES (%s, 'running', %s)"
SAVE = "UPDATE runs SET status = %s, messages = %s WHERE run = %s"


def main() -> int:
    """One life."""
    words = kit.words()
    db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    db.execute(TABLE)
    rows = db.execute("SELECT status, messages FROM runs WHERE run = %s", (words.run,))
    if (row := rows.fetchone()) is not None and row[0] == "running":
        kit.fail("this run was running when its process ended: it has crashed")
    messages = [kit.user(words.goal)] if row is None else json.loads(row[1])
    if row is None:
        db.execute(START, (words.run, json.dumps(messages)))
    while not kit.is_over(messages):
        for position, call in enumerate(kit.unanswered(messages)):
            key = f"{words.run}/{kit.turn_of(messages)}/{position}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
        messages.append(kit.ask(messages))
        status = "done" if kit.is_over(messages) else "running"
        db.execute(SAVE, (status, json.dumps(messages), words.run))
    return kit.finish(messages[-1]["content"])
