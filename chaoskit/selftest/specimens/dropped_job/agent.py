"""A worker on a list in Redis; what it was working on it finds in a hash.

agent.py worker | submit RUN GOAL | status RUN
"""

import json
import os
import sys
from typing import Any

import redis

from chaoskit.selftest import kit

QUEUE, RUNNING, DONE = "queue", "running", "done"


def store() -> Any:
    """A client whose answers are text."""
    return redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def work(db: Any, run: str, messages: list[kit.Message]) -> None:
    """From where the job is to its end."""
    while not kit.is_over(messages):
        for position, call in enumerate(kit.unanswered(messages)):
            key = f"{run}/{kit.turn_of(messages)}/{position}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
            db.hset(RUNNING, run, json.dumps(messages))
        messages.append(kit.ask(messages))
        db.hset(RUNNING, run, json.dumps(messages))
    db.hset(DONE, run, messages[-1]["content"])
    db.hdel(RUNNING, run)


def worker(db: Any) -> None:
    """First what was left, then what comes."""
    for run, text in db.hgetall(RUNNING).items():
        work(db, run, json.loads(text))
    while True:
        _, text = db.blpop(QUEUE)
        run, goal = json.loads(text)
        if db.hexists(DONE, run):
            continue  # it was submitted twice
        # Here: it is not in the queue any more, and not yet anywhere else.
        db.hset(RUNNING, run, json.dumps([kit.user(goal)]))
        work(db, run, [kit.user(goal)])


def main() -> None:
    """Do what the command line says."""
    db = store()
    match sys.argv[1:]:
        case ["worker"]:
            worker(db)
        case ["submit", run, goal]:
            db.rpush(QUEUE, json.dumps([run, goal]))
        case ["status", run]:
            answer = db.hget(DONE, run)
            print("running" if answer is None else f"done\n{answer}")
