"""A run is a generator of questions and calls; its answers are rows of a database."""

import json
import os
import sqlite3
import uuid
from collections.abc import Generator
from typing import Any

from chaoskit.selftest import kit

Step = tuple[str, Any]
Course = Generator[Step, Any, str]


def course(goal: str) -> Course:
    """What is to be done, one step after the other; each is answered by `send`."""
    messages = [kit.user(goal)]
    while not kit.is_over(messages):
        messages.append((yield "ask", list(messages)))
        for call in kit.calls(messages[-1]):
            text = yield "act", call
            messages.append(kit.result(call, text))
    return str(messages[-1]["content"])


def do(kind: str, what: Any) -> Any:
    """Take one step for real."""
    if kind == "ask":
        return kit.ask(what)
    # A key that no earlier attempt knows.
    return kit.tool(what.tool, what.args, key=uuid.uuid4().hex)


def main() -> int:
    """Play back what was answered before, then go on."""
    words = kit.words()
    path = os.path.join(os.environ["CHAOSKIT_STATE_DIR"], "agent.db")
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE IF NOT EXISTS answers (n INTEGER PRIMARY KEY, text TEXT)")
    earlier = db.execute("SELECT text FROM answers ORDER BY n").fetchall()
    steps, answers = course(words.goal), [json.loads(text) for (text,) in earlier]
    try:
        step = next(steps)
        while True:
            if answers:
                step = steps.send(answers.pop(0))
                continue
            answer = do(*step)
            db.execute("INSERT INTO answers (text) VALUES (?)", (json.dumps(answer),))
            step = steps.send(answer)
    except StopIteration as end:
        return kit.finish(end.value)
