"""Each call is a row that is begun and then done; one that is only begun is a doubt."""

import json
import os

import psycopg

from chaoskit.selftest import kit

TABLES = """
CREATE TABLE IF NOT EXISTS turns (n SERIAL PRIMARY KEY, message TEXT);
CREATE TABLE IF NOT EXISTS calls (id TEXT PRIMARY KEY, result TEXT)
"""


class Run:
    """One run in tables of its own."""

    def __init__(self, words: kit.Words) -> None:
        self.words = words
        self.db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        self.db.execute(TABLES)

    def messages(self) -> list[kit.Message]:
        """The conversation, with what came of each call that was made."""
        told = [kit.user(self.words.goal)]
        rows = self.db.execute("SELECT message FROM turns ORDER BY n").fetchall()
        for turn, (text,) in enumerate(rows):
            told.append(json.loads(text))
            told += [
                kit.result(call, self.act(f"{self.words.run}/{turn}/{position}", call))
                for position, call in enumerate(kit.calls(told[-1]))
            ]
        return told

    def act(self, key: str, call: kit.Call) -> str:
        """The result of a call, which is made if it was never begun."""
        rows = self.db.execute("SELECT result FROM calls WHERE id = %s", (key,))
        row = rows.fetchone()
        if row is not None and row[0] is not None:
            return str(row[0])
        if row is not None:
            kit.park(f"{call.tool} may have been done; somebody has to look")
        self.db.execute("INSERT INTO calls VALUES (%s, NULL)", (key,))
        result = kit.tool(call.tool, call.args, key)
        self.db.execute("UPDATE calls SET result = %s WHERE id = %s", (result, key))
        return result


def main() -> int:
    """One life."""
    run = Run(kit.words())
    while not kit.is_over(messages := run.messages()):
        text = json.dumps(kit.ask(messages))
        run.db.execute("INSERT INTO turns (message) VALUES (%s)", (text,))
    return kit.finish(messages[-1]["content"])
