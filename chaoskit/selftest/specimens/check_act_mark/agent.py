"""A marker in a table guards each effect, and comes into it after the effect."""

import json
import os

import psycopg

from chaoskit.selftest import kit

TABLES = """
CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, messages TEXT);
CREATE TABLE IF NOT EXISTS markers (name TEXT PRIMARY KEY, result TEXT)
"""
SAVE = """
INSERT INTO runs VALUES (%(run)s, %(text)s)
ON CONFLICT (run) DO UPDATE SET messages = %(text)s
"""


class Run:
    """One run, and the connection that it is kept through."""

    def __init__(self, words: kit.Words) -> None:
        self.run = words.run
        self.db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        self.db.execute(TABLES)
        rows = self.db.execute("SELECT messages FROM runs WHERE run = %s", (self.run,))
        saved = rows.fetchone()
        self.messages = json.loads(saved[0]) if saved else [kit.user(words.goal)]

    def go(self) -> int:
        """To the end."""
        while not kit.is_over(self.messages):
            turn = kit.turn_of(self.messages)
            self.messages += [
                kit.result(call, self.once(f"{self.run}/{turn}/{position}", call))
                for position, call in enumerate(kit.unanswered(self.messages))
            ]
            self.messages.append(kit.ask(self.messages))
            text = json.dumps(self.messages)
            self.db.execute(SAVE, {"run": self.run, "text": text})
        return kit.finish(self.messages[-1]["content"])

    def once(self, marker: str, call: kit.Call) -> str:
        """Select, act, insert."""
        found = self.db.execute("SELECT result FROM markers WHERE name = %s", (marker,))
        if (earlier := found.fetchone()) is not None:
            return str(earlier[0])
        result = kit.tool(call.tool, call.args)
        self.db.execute("INSERT INTO markers VALUES (%s, %s)", (marker, result))
        return result


def main() -> int:
    """One life."""
    return Run(kit.words()).go()
