"""A worker that takes up all runs when it starts; each may be begun only so often.

agent.py worker | submit RUN GOAL | status RUN

Beside the run that it is given it has one of its own, which dies with it each time.
"""

import json
import os
import sys
import time
from typing import Any

import redis

from chaoskit.selftest import kit

POLL_SECONDS = 0.02
BEGINS_MAX = 1
OWN = "clean-up"


class DeadLetter(Exception):
    """A run that was begun too often; somebody has to look at it."""


class Runs:
    """All runs: how often each was begun, and what was said in it."""

    def __init__(self) -> None:
        self.store: Any = redis.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )

    def load(self, run: str) -> list[kit.Message]:
        """What was said; nothing where there is no such run."""
        found: list[kit.Message] = json.loads(self.store.get(f"said:{run}") or "[]")
        return found

    def save(self, run: str, messages: list[kit.Message]) -> None:
        """Store how far it is."""
        self.store.set(f"said:{run}", json.dumps(messages))

    def admit(self, run: str, goal: str) -> None:
        """Take it in; told again, nothing of what was said is lost."""
        self.store.set(f"said:{run}", json.dumps([kit.user(goal)]), nx=True)
        self.store.sadd("runs", run)

    def recover(self) -> list[str]:
        """What was begun. One run that is beyond hope ends this for all of them."""
        begun = self.store.hgetall("begins")
        for run in sorted(begun):
            if run == OWN and int(begun[run]) >= BEGINS_MAX:
                raise DeadLetter(f"{run} was begun {begun[run]} times")
        return self.open()

    def open(self) -> list[str]:
        """Runs that are not over."""
        runs = sorted(self.store.smembers("runs"))
        return [run for run in runs if not kit.is_over(self.load(run))]


def work(runs: Runs, run: str) -> None:
    """Go on with one run to its end."""
    messages = runs.load(run)
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            call, key = waiting[0], f"{run}/{len(messages)}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
        else:
            messages.append(kit.ask(messages))
        runs.save(run, messages)


def worker(runs: Runs) -> None:
    """Take up what is there, then wait for more."""
    todo = runs.recover()
    while True:
        if todo:
            runs.store.hincrby("begins", OWN, 1)
        for run in todo:
            work(runs, run)
        if todo:
            runs.store.hdel("begins", OWN)
        time.sleep(POLL_SECONDS)
        todo = runs.open()


def main() -> None:
    """Do what the command line says."""
    runs = Runs()
    match sys.argv[1:]:
        case ["worker"]:
            worker(runs)
        case ["submit", run, goal]:
            runs.admit(run, goal)
        case ["status", run]:
            messages = runs.load(run)
            print("done" if kit.is_over(messages) else "running")
            if kit.is_over(messages):
                print(messages[-1]["content"])
