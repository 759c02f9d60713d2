"""What the model says and what has to be sent for it are stored in one transaction.

Mails leave an outbox, each under a Message-ID that is drawn at random when it is put
there; a mail that may have left is sent again under the same one.
"""

import json
import os
import uuid
from typing import Any

import psycopg

from chaoskit.selftest import kit

TABLES = """
CREATE TABLE IF NOT EXISTS said
    (run text, n integer, message jsonb, PRIMARY KEY (run, n));
CREATE TABLE IF NOT EXISTS outbox
    (call text PRIMARY KEY, run text, args jsonb, message_id text,
     queued timestamptz DEFAULT now(), sent timestamptz)
"""
Db = psycopg.Connection[tuple[Any, ...]]


def conversation(db: Db, run: str, goal: str) -> list[kit.Message]:
    """All that was said, oldest first."""
    rows = db.execute("SELECT message FROM said WHERE run = %s ORDER BY n", (run,))
    return [kit.user(goal), *(row[0] for row in rows)]


def add(db: Db, run: str, n: int, message: kit.Message) -> None:
    """One message more."""
    row = (run, n, json.dumps(message))
    db.execute("INSERT INTO said VALUES (%s, %s, %s)", row)


def queue(db: Db, run: str, call: kit.Call) -> None:
    """Put a mail into the outbox."""
    message_id = f"<{uuid.uuid4()}@specimen.test>"
    db.execute(
        "INSERT INTO outbox (call, run, args, message_id) VALUES (%s, %s, %s, %s)",
        (call.id, run, json.dumps(call.args), message_id),
    )


def send_all(db: Db, run: str) -> None:
    """Send what has not been sent, as far as is known."""
    asked = "SELECT call, args, message_id FROM outbox WHERE run = %s AND sent IS NULL"
    for name, mail, message_id in db.execute(asked, (run,)).fetchall():
        kit.mail(mail["to"], mail["subject"], mail["body"], message_id)
        db.execute("UPDATE outbox SET sent = now() WHERE call = %s", (name,))


def main() -> int:
    """One life."""
    words = kit.words()
    db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    db.execute(TABLES)
    while not kit.is_over(messages := conversation(db, words.run, words.goal)):
        send_all(db, words.run)
        n = len(messages)
        new = [kit.result(call, "sent") for call in kit.unanswered(messages)]
        new = new or [kit.ask(messages)]
        with db.transaction():
            for place, message in enumerate(new, n):
                add(db, words.run, place, message)
                for call in kit.calls(message):
                    queue(db, words.run, call)
    return kit.finish(messages[-1]["content"])
