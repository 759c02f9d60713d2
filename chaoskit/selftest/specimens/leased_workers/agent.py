"""Workers that share runs in Redis, each run under a lease with a fencing token.

agent.py worker | submit RUN GOAL | status RUN | inspect RUN

A lease ends by itself. Its token is higher than that of any lease before, and a save
under a lower one is refused; a worker that is refused drops the run.
"""

import json
import os
import signal
import socket
import sys
import time
from typing import Any

import redis

from chaoskit.selftest import kit

LEASE_MILLISECONDS = 1500
POLL_SECONDS = 0.03
CLAIM = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local token = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], token, 'PX', ARGV[1])
redis.call('HSET', KEYS[3], 'token', token, 'owner', ARGV[2], 'since', ARGV[3])
return token
"""
SAVE = """
if tonumber(redis.call('HGET', KEYS[2], 'token')) ~= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('HSET', KEYS[2], 'n', ARGV[3], 'status', ARGV[4], 'messages', ARGV[5])
return 1
"""
LET_GO = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
"""


class Lost(Exception):
    """Another worker has the run."""


class Runs:
    """All runs."""

    def __init__(self) -> None:
        self.store: Any = redis.Redis.from_url(
            os.environ["REDIS_URL"], decode_responses=True
        )

    def submit(self, run: str, goal: str) -> None:
        """Add a run, once."""
        text = json.dumps([kit.user(goal)])
        fresh = {"n": 0, "status": "running", "messages": text, "token": 0}
        with self.store.pipeline(transaction=True) as pipeline:
            for field, value in fresh.items():
                pipeline.hsetnx(f"run:{run}", field, value)
            pipeline.sadd("runs", run)
            pipeline.execute()

    def load(self, run: str) -> Any:
        """What is stored."""
        found = self.store.hgetall(f"run:{run}")
        return {**found, "messages": json.loads(found.get("messages", "[]"))}

    def open(self) -> list[str]:
        """Runs that somebody has to work on."""
        runs = sorted(self.store.smembers("runs"))
        return [r for r in runs if self.store.hget(f"run:{r}", "status") == "running"]

    def claim(self, run: str) -> int:
        """A token, or 0 where somebody else has the run."""
        names = (f"lease:{run}", f"tokens:{run}", f"run:{run}")
        if self.store.exists(names[0]):
            return 0
        owner = f"{socket.gethostname()}/{os.getpid()}"
        words = (LEASE_MILLISECONDS, owner, time.time())
        return int(self.store.eval(CLAIM, 3, *names, *words))

    def save(self, run: str, token: int, n: int, messages: list[kit.Message]) -> None:
        """Save, and keep the lease for some time more."""
        status = "done" if kit.is_over(messages) else "running"
        words = (token, LEASE_MILLISECONDS, n, status, json.dumps(messages))
        if not self.store.eval(SAVE, 2, f"lease:{run}", f"run:{run}", *words):
            raise Lost

    def let_go(self, run: str, token: int) -> None:
        """Leave the run to others, if it is still ours."""
        self.store.eval(LET_GO, 1, f"lease:{run}", token)


def work(runs: Runs, run: str, token: int) -> None:
    """From where the run is to its end."""
    state = runs.load(run)
    n, messages = int(state["n"]), state["messages"]
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            call, key = waiting[0], f"{run}/{len(messages)}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
        else:
            messages.append(kit.ask(messages))
        n += 1
        runs.save(run, token, n, messages)
    runs.let_go(run, token)


def worker(runs: Runs) -> None:
    """Work until asked to end."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    while not asked:
        for run in runs.open():
            token = runs.claim(run)
            try:
                if token:
                    work(runs, run, token)
            except Lost:
                print(f"somebody else goes on with {run}", file=sys.stderr)
        time.sleep(POLL_SECONDS)


def status(runs: Runs, run: str) -> None:
    """Say how a run stands, and what came of it."""
    state = runs.load(run)
    print(state["status"])
    if state["status"] == "done":
        print(state["messages"][-1]["content"])


def inspect(runs: Runs, run: str) -> None:
    """Print what the next worker would read."""
    state = runs.load(run)
    shown = {"checkpoint_id": int(state.get("n", 0)), "status": state.get("status")}
    print(json.dumps({**shown, "transcript": state["messages"]}))


def main() -> None:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["worker"]:
            worker(Runs())
        case ["submit", run, goal]:
            Runs().submit(run, goal)
        case ["status", run]:
            status(Runs(), run)
        case ["inspect", run]:
            inspect(Runs(), run)
