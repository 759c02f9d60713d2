"""Keeps the conversation in PostgreSQL, and its receipts in the process."""

import json
import os

import psycopg

from chaoskit.selftest import kit

TABLE = """
CREATE TABLE IF NOT EXISTS said
    (run text, n integer, message jsonb, PRIMARY KEY (run, n))
"""


def main() -> int:
    """One life."""
    words, receipts = kit.words(), list[str]()
    db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    db.execute(TABLE)
    asked = "SELECT message FROM said WHERE run = %s ORDER BY n"
    rows = db.execute(asked, (words.run,)).fetchall()
    messages: list[kit.Message] = [kit.user(words.goal), *(row[0] for row in rows)]
    while not kit.is_over(messages):
        n, waiting = len(messages), kit.unanswered(messages)
        if waiting:
            key = f"{words.run}/{n}"
            receipts.append(kit.tool(waiting[0].tool, waiting[0].args, key))
            new = kit.result(waiting[0], receipts[-1])
        else:
            new = kit.ask(messages)
        row = (words.run, n, json.dumps(new))
        db.execute("INSERT INTO said VALUES (%s, %s, %s)", row)
        messages.append(new)
    # What an earlier life has done is in the table, and not in this list.
    return kit.finish(f"{messages[-1]['content']} Receipts: {len(receipts)}")
