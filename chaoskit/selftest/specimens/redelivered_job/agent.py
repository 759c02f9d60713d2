"""Workers on a table of jobs, each held by a lock that its worker's death lets go.

agent.py worker | submit RUN GOAL | status RUN
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from chaoskit.selftest import kit

POLL_SECONDS = 0.02
TABLE = """
CREATE TABLE IF NOT EXISTS jobs (run TEXT PRIMARY KEY, status TEXT, messages TEXT)
"""
SUBMIT = "INSERT INTO jobs VALUES (%s, 'running', %s) ON CONFLICT DO NOTHING"
OPEN = "SELECT run FROM jobs WHERE status = 'running' LIMIT 1"
SAVE = "UPDATE jobs SET status = %s, messages = %s WHERE run = %s"


class Queue:
    """The jobs that there are."""

    def __init__(self) -> None:
        self.db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)

    def one(self, query: str, *words: object) -> str | None:
        """The only value of the only row; None if there is none."""
        row = self.db.execute(query.encode(), words).fetchone()
        return None if row is None else row[0]

    def submit(self, run: str, goal: str) -> None:
        """Add a job, once, and the table with the first one."""
        self.db.execute(TABLE)
        self.db.execute(SUBMIT, (run, json.dumps([kit.user(goal)])))

    def save(self, run: str, messages: list[kit.Message]) -> None:
        """Store how far a job is."""
        status = "done" if kit.is_over(messages) else "running"
        self.db.execute(SAVE, (status, json.dumps(messages), run))

    @contextmanager
    def job(self) -> Iterator[str | None]:
        """A job that nobody else has, while this lasts; None if there is none."""
        there = self.one("SELECT to_regclass('jobs')::text")
        run = None if there is None else self.one(OPEN)
        if run is None or not self.one(
            "SELECT pg_try_advisory_lock(hashtext(%s))", run
        ):
            yield None
            return
        yield run
        self.one("SELECT pg_advisory_unlock(hashtext(%s))", run)


def work(queue: Queue, run: str) -> None:
    """From where the job is to its end."""
    state = queue.one("SELECT messages FROM jobs WHERE run = %s", run)
    messages = json.loads(str(state))
    while not kit.is_over(messages):
        for call in kit.unanswered(messages):
            messages.append(kit.result(call, kit.tool(call.tool, call.args)))
            queue.save(run, messages)
        messages.append(kit.ask(messages))
        queue.save(run, messages)


def worker(queue: Queue) -> None:
    """Work for ever."""
    clock = threading.Event()
    while not clock.wait(POLL_SECONDS):
        with queue.job() as run:
            if run is not None:
                work(queue, run)


def status(queue: Queue, run: str) -> None:
    """Say how a run stands, and what came of it."""
    state = str(queue.one("SELECT status FROM jobs WHERE run = %s", run))
    print(state)
    if state == "done":
        text = queue.one("SELECT messages FROM jobs WHERE run = %s", run)
        print(json.loads(str(text))[-1]["content"])


def main() -> None:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["worker"]:
            worker(Queue())
        case ["submit", run, goal]:
            Queue().submit(run, goal)
        case ["status", run]:
            status(Queue(), run)
