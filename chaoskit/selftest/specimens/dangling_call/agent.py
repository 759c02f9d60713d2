"""A session of messages in a table; whoever comes back to it says so to the model."""

import json
import os

import psycopg

from chaoskit.selftest import kit

TABLE = "CREATE TABLE IF NOT EXISTS messages (n SERIAL PRIMARY KEY, text TEXT)"


class Session:
    """Messages, stored as they come."""

    def __init__(self) -> None:
        self.db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        self.db.execute(TABLE)
        rows = self.db.execute("SELECT text FROM messages ORDER BY n").fetchall()
        self.messages = [json.loads(text) for (text,) in rows]

    def add(self, message: kit.Message) -> None:
        """One more, durable once it returns."""
        row = (json.dumps(message),)
        self.db.execute("INSERT INTO messages (text) VALUES (%s)", row)
        self.messages.append(message)


def main() -> int:
    """One life."""
    words, session = kit.words(), Session()
    talk = session.messages
    if not talk:
        session.add(kit.user(words.goal))
    elif talk[-1]["role"] == "assistant" and talk[-1].get("tool_calls"):
        session.add(kit.user("I was away. Please go on."))
    while not kit.is_over(talk):
        calls = kit.calls(talk[-1]) if talk[-1]["role"] == "assistant" else ()
        for position, call in enumerate(calls):
            key = f"{words.run}/{kit.turn_of(talk)}/{position}"
            session.add(kit.result(call, kit.tool(call.tool, call.args, key)))
        session.add(kit.ask(talk))
    return kit.finish(talk[-1]["content"])
