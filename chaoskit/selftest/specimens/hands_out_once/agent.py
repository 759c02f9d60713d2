"""A worker on a hash of runs in Redis, from which those that were fetched are gone.

agent.py worker | submit RUN GOAL | status RUN
"""

import json
import os
import sys
import threading
from typing import Any

import redis

from chaoskit.selftest import kit

RUNS = "runs"
POLL_SECONDS = 0.02


def store() -> Any:
    """A client whose answers are text."""
    return redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def work(db: Any, run: str, messages: list[kit.Message]) -> None:
    """From where the run is to its end."""
    while not kit.is_over(messages):
        for position, call in enumerate(kit.unanswered(messages)):
            key = f"{run}/{kit.turn_of(messages)}/{position}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
            db.hset(RUNS, run, json.dumps(messages))
        messages.append(kit.ask(messages))
        db.hset(RUNS, run, json.dumps(messages))


def worker(db: Any) -> None:
    """Work for ever."""
    clock = threading.Event()
    while not clock.wait(POLL_SECONDS):
        for run, text in db.hgetall(RUNS).items():
            work(db, run, json.loads(text))


def status(db: Any, run: str) -> None:
    """Say how a run stands, and what came of it."""
    text = db.hget(RUNS, run)
    if text is None:
        sys.exit(f"no such run: {run}")
    messages = json.loads(text)
    if not kit.is_over(messages):
        print("running")
        return
    print(f"done\n{messages[-1]['content']}")
    db.hdel(RUNS, run)  # it is fetched, and nobody needs it any more


def main() -> None:
    """Do what the command line says."""
    db = store()
    match sys.argv[1:]:
        case ["worker"]:
            worker(db)
        case ["submit", run, goal]:
            db.hsetnx(RUNS, run, json.dumps([kit.user(goal)]))
        case ["status", run]:
            status(db, run)
