"""One row in PostgreSQL, locked while it is changed; its version says who is behind."""

import json
import os
import sys
from typing import Any

import psycopg

from chaoskit.selftest import kit

TABLE = """
CREATE TABLE IF NOT EXISTS runs (
    run text PRIMARY KEY, version integer NOT NULL, status text NOT NULL,
    messages jsonb NOT NULL
)
"""
LOCK = "SELECT version FROM runs WHERE run = %s FOR UPDATE"
SAVE = "UPDATE runs SET version = %s, status = %s, messages = %s WHERE run = %s"
NEW = "INSERT INTO runs VALUES (%s, 1, 'running', %s) ON CONFLICT DO NOTHING"
LOAD = "SELECT version, status, messages FROM runs WHERE run = %s"


class Overtaken(SystemExit):
    """Another life goes on with the run."""


class Run:
    """One run, as this life has seen it."""

    def __init__(self, words: kit.Words) -> None:
        self.run = words.run
        self.db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        self.db.execute(TABLE)
        self.db.execute(NEW, (self.run, json.dumps([kit.user(words.goal)])))
        row: Any = self.db.execute(LOAD, (self.run,)).fetchone()
        self.version: int = row[0]
        self.messages: list[kit.Message] = row[2]
        self.log("run.resume" if self.version > 1 else "run.start")

    def log(self, event: str) -> None:
        """A line."""
        kit.log(event, self.run, len(self.messages), self.version)

    def add(self, message: kit.Message) -> None:
        """Save it in a transaction that nobody else gets into."""
        messages = [*self.messages, message]
        status = "done" if kit.is_over(messages) else "running"
        row = (self.version + 1, status, json.dumps(messages), self.run)
        with self.db.transaction():
            found: Any = self.db.execute(LOCK, (self.run,)).fetchone()
            if found[0] != self.version:
                raise Overtaken("another life goes on with the run")
            self.db.execute(SAVE, row)
        self.version, self.messages = self.version + 1, messages
        self.log("checkpoint")

    def go(self) -> int:
        """To the end."""
        while not kit.is_over(self.messages):
            waiting = kit.unanswered(self.messages)
            if waiting:
                call, key = waiting[0], f"{self.run}/{len(self.messages)}"
                self.add(kit.result(call, kit.tool(call.tool, call.args, key)))
            else:
                self.add(kit.ask(self.messages))
        self.log("run.end")
        return kit.finish(self.messages[-1]["content"])


def inspect(run: str) -> int:
    """Print what the next life would read."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
        there: Any = db.execute("SELECT to_regclass('runs')").fetchone()
        row: Any = there[0] and db.execute(LOAD, (run,)).fetchone()
    names = ("checkpoint_id", "status", "transcript")
    print(json.dumps(dict(zip(names, row or (0, None, []), strict=True))))
    return 0


def main() -> int:
    """One life, or a look."""
    if sys.argv[1] == "inspect":
        return inspect(sys.argv[2])
    return Run(kit.words()).go()
