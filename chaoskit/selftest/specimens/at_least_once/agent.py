"""Promises that each call is made, once or more often: a step is done, then noted.

The notes are rows of a table; the process says much that is not JSON.
"""

import json
import os
import sys

import psycopg

from chaoskit.selftest import kit

TABLE = """
CREATE TABLE IF NOT EXISTS notes (
    run text, step integer, message jsonb, attempt serial,
    noted timestamptz DEFAULT clock_timestamp(), PRIMARY KEY (run, step)
)
"""
NOTE = "INSERT INTO notes (run, step, message) VALUES (%s, %s, %s)"


def main() -> int:
    """One life."""
    words = kit.words()
    db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    db.execute(TABLE)
    asked = "SELECT message FROM notes WHERE run = %s ORDER BY step"
    rows = db.execute(asked, (words.run,)).fetchall()
    messages: list[kit.Message] = [kit.user(words.goal), *(row[0] for row in rows)]
    print(f"{os.getpid()} found {len(rows)} notes {{not json", file=sys.stderr)
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            new = kit.result(waiting[0], kit.tool(waiting[0].tool, waiting[0].args))
        else:
            new = kit.ask(messages)
        db.execute(NOTE, (words.run, len(messages), json.dumps(new)))
        messages.append(new)
    return kit.finish(messages[-1]["content"])
