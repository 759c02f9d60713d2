"""A row in PostgreSQL; a save that does not go on from what was read is refused.

Whoever is refused says on its way out that the run has failed.
"""

import json
import os
import sys
from typing import Any

import psycopg

from chaoskit.selftest import kit

TABLE = """
CREATE TABLE IF NOT EXISTS runs
    (run text PRIMARY KEY, version integer, status text, messages jsonb)
"""
NEW = "INSERT INTO runs VALUES (%s, 1, 'running', %s) ON CONFLICT DO NOTHING"
LOAD = "SELECT version, status, messages FROM runs WHERE run = %s"
SAVE = """
UPDATE runs SET version = version + 1, status = %s, messages = %s
WHERE run = %s AND version = %s
"""


class Overtaken(Exception):
    """Another life goes on with the run."""


def go(db: psycopg.Connection[Any], run: str) -> str:
    """From what is stored to the last word."""
    found: Any = db.execute(LOAD, (run,)).fetchone()
    version, messages = (found[0], found[2]) if found else (0, [])
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            call, key = waiting[0], f"{run}/{len(messages)}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
        else:
            messages.append(kit.ask(messages))
        status = "done" if kit.is_over(messages) else "running"
        row = (status, json.dumps(messages), run, version)
        if not db.execute(SAVE, row).rowcount:
            raise Overtaken
        version += 1
    return str(messages[-1]["content"])


def inspect(db: psycopg.Connection[Any], run: str) -> int:
    """Print what the next life would read."""
    there: Any = db.execute("SELECT to_regclass('runs')").fetchone()
    row: Any = (there[0] and db.execute(LOAD, (run,)).fetchone()) or (0, None, [])
    names = ("checkpoint_id", "status", "transcript")
    print(json.dumps(dict(zip(names, row, strict=True))))
    return 0


def main() -> int:
    """One life, or a look."""
    db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    if sys.argv[1] == "inspect":
        return inspect(db, sys.argv[2])
    words = kit.words()
    db.execute(TABLE)
    db.execute(NEW, (words.run, json.dumps([kit.user(words.goal)])))
    try:
        return kit.finish(go(db, words.run))
    except Overtaken:
        db.execute("UPDATE runs SET status = 'failed' WHERE run = %s", (words.run,))
        raise
