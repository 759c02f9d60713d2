"""Workers that keep house: finished runs go when a worker starts.

agent.py worker | submit RUN GOAL | status RUN

A run is one at a time's, as long as its lease lasts. One that was over at two starts of
a worker is taken for old; but two workers that start together are no sign of age.
"""

import json
import os
import signal
import sys
import time
from typing import Any

import redis

from chaoskit.selftest import kit

LEASE_MILLISECONDS = 1500
POLL_SECONDS = 0.03
TIDY = """
for _, run in ipairs(redis.call('SMEMBERS', 'runs')) do
  local key = 'run:' .. run
  if redis.call('HGET', key, 'status') == 'done'
      and redis.call('HINCRBY', key, 'starts', 1) == 2 then
    redis.call('DEL', key)
    redis.call('SREM', 'runs', run)
  end
end
"""


def connected() -> Any:
    """The store of all runs."""
    return redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def submit(run: str, goal: str) -> None:
    """Add a run, once."""
    store = connected()
    store.hsetnx(f"run:{run}", "messages", json.dumps([kit.user(goal)]))
    store.hsetnx(f"run:{run}", "status", "running")
    store.sadd("runs", run)


def status(run: str) -> None:
    """Say how a run stands, and what came of it."""
    found = connected().hgetall(f"run:{run}")
    if not found:
        sys.exit(f"there is no run {run}")
    print(found["status"])
    if found["status"] == "done":
        print(json.loads(found["messages"])[-1]["content"])


def work(store: Any, run: str) -> None:
    """From where the run is to its end, under a lease that each save renews."""
    messages = json.loads(store.hget(f"run:{run}", "messages"))
    while not kit.is_over(messages):
        waiting = kit.unanswered(messages)
        if waiting:
            call, key = waiting[0], f"{run}/{len(messages)}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
        else:
            messages.append(kit.ask(messages))
        store.set(f"lease:{run}", "held", xx=True, px=LEASE_MILLISECONDS)
        state = "done" if kit.is_over(messages) else "running"
        saved = {"messages": json.dumps(messages), "status": state}
        store.hset(f"run:{run}", mapping=saved)


def worker() -> None:
    """Tidy up, then work until asked to end."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    store = connected()
    store.eval(TIDY, 0)
    while not asked:
        for run in sorted(store.smembers("runs")):
            is_open = store.hget(f"run:{run}", "status") == "running"
            terms = {"nx": True, "px": LEASE_MILLISECONDS}
            if is_open and store.set(f"lease:{run}", "held", **terms):
                work(store, run)
        time.sleep(POLL_SECONDS)


def main() -> None:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["worker"]:
            worker()
        case ["submit", run, goal]:
            submit(run, goal)
        case ["status", run]:
            status(run)
