"""Each call and its result are a transaction, which is tried again if it is cut off."""

import json
import os
from typing import Any

import psycopg

from chaoskit.selftest import kit

TABLES = """
CREATE TABLE IF NOT EXISTS turns
    (run text, n integer, message jsonb, PRIMARY KEY (run, n));
CREATE TABLE IF NOT EXISTS results (call text PRIMARY KEY, run text, result text)
"""
TRIES = 3
Db = psycopg.Connection[tuple[Any, ...]]


def connect() -> Db:
    """A connection; each statement is a transaction of its own, unless it is in one."""
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


def make(db: Db, run: str, call: kit.Call) -> None:
    """The call is one behind those that are there, and its key says so."""
    with db.transaction():
        count = "SELECT count(*) FROM results WHERE run = %s"
        row: Any = db.execute(count, (run,)).fetchone()
        result = kit.tool(call.tool, call.args, f"{run}/{row[0]}")
        insert = "INSERT INTO results VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        db.execute(insert, (call.id, run, result))


def surely(db: Db, run: str, call: kit.Call) -> Db:
    """Whoever does not hear of the commit has not committed, and tries again."""
    for _ in range(TRIES):
        try:
            make(db, run, call)
        except psycopg.OperationalError:
            db = connect()
        else:
            return db
    raise SystemExit("the database cannot be reached")


def conversation(db: Db, run: str, goal: str) -> list[kit.Message]:
    """Turns, and the results that are there."""
    messages = [kit.user(goal)]
    asked = "SELECT message FROM turns WHERE run = %s ORDER BY n"
    found = db.execute("SELECT call, result FROM results WHERE run = %s", (run,))
    results: dict[str, str] = dict(found.fetchall())
    for (turn,) in db.execute(asked, (run,)).fetchall():
        messages.append(turn)
        made = (call for call in kit.calls(turn) if call.id in results)
        messages += [kit.result(call, results[call.id]) for call in made]
    return messages


def main() -> int:
    """One life."""
    words = kit.words()
    db = connect()
    db.execute(TABLES)
    while not kit.is_over(messages := conversation(db, words.run, words.goal)):
        waiting = kit.unanswered(messages)
        if waiting:
            db = surely(db, words.run, waiting[0])
        else:
            row = (words.run, len(messages), json.dumps(kit.ask(messages)))
            db.execute("INSERT INTO turns VALUES (%s, %s, %s)", row)
    return kit.finish(messages[-1]["content"])
