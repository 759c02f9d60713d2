"""Keeps each request to the model as it was sent, for whoever has to debug it."""

import json
import os
from typing import Any

import psycopg

from chaoskit.selftest import kit

TABLES = """
CREATE TABLE IF NOT EXISTS runs (run text PRIMARY KEY, messages jsonb);
CREATE TABLE IF NOT EXISTS requests (run text, n integer, request jsonb)
"""
SAVE = """
INSERT INTO runs VALUES (%(run)s, %(messages)s)
ON CONFLICT (run) DO UPDATE SET messages = %(messages)s
"""


def ask(db: psycopg.Connection[Any], run: str, messages: list[Any]) -> Any:
    """The next turn; the request is stored with all of its headers."""
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    body = {"model": "any", "messages": messages}
    row = (run, len(messages), json.dumps({"url": url, "headers": headers}))
    db.execute("INSERT INTO requests VALUES (%s, %s, %s)", row)
    message = kit.post(url, body, headers)["choices"][0]["message"]
    return {name: value for name, value in message.items() if value is not None}


def main() -> int:
    """One life."""
    words = kit.words()
    db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    db.execute(TABLES)
    asked = "SELECT messages FROM runs WHERE run = %s"
    found: Any = db.execute(asked, (words.run,)).fetchone()
    messages: list[Any] = found[0] if found else [kit.user(words.goal)]
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            call, key = waiting[0], f"{words.run}/{len(messages)}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
        else:
            messages.append(ask(db, words.run, messages))
        db.execute(SAVE, {"run": words.run, "messages": json.dumps(messages)})
    return kit.finish(messages[-1]["content"])
