"""LangGraph as its documentation shows it, and nothing else: the thinnest adapter.

``create_agent`` with a checkpointer and a ``durability`` mode; the run's id is the
``thread_id``. To resume is ``invoke(None)`` where the thread has a checkpoint, and the
first input where it has none. A tool's call id is its idempotency key, and the human
gate is a tool that calls ``interrupt()``.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool
from langchain_core.messages import convert_to_openai_messages
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command, interrupt

DONE, PARKED = 0, 75
NO_MODULES = (
    "the server at REDIS_URL has no RedisJSON and RediSearch, which LangGraph's Redis"
    " saver needs. Run ./setup.sh --redis and put .venv/redis first on PATH, or name a"
    " Redis 8 or Redis Stack server in CHAOSKIT_REDIS_URL and use --jobs 1"
)


def _call(name: str, runtime: ToolRuntime, **arguments: object) -> str:
    answer = httpx.post(
        f"{os.environ['CHAOSKIT_TOOLS_URL']}/{name}",
        json=arguments,
        headers={"Idempotency-Key": runtime.tool_call_id},
    )
    return json.dumps(answer.raise_for_status().json()["result"])


@tool
def find_price(room: str, runtime: ToolRuntime) -> str:
    """What a room costs."""
    return _call("find_price", runtime, room=room)


@tool
def book(room: str, runtime: ToolRuntime) -> str:
    """Book a room."""
    return _call("book", runtime, room=room)


@tool
def pay(order: str, cents: int, runtime: ToolRuntime) -> str:
    """Pay an order."""
    return _call("pay", runtime, order=order, cents=cents)


@tool
def ask_human(question: str) -> str:
    """Ask a person."""
    return str(interrupt(question))


@contextmanager
def _saver(store: str) -> Iterator[BaseCheckpointSaver[str]]:
    """The checkpointer, set up on each start as the documentation does."""
    if store == "sqlite":
        from langgraph.checkpoint.sqlite import SqliteSaver

        path = os.path.join(os.environ["CHAOSKIT_STATE_DIR"], "agent.db")
        with SqliteSaver.from_conn_string(path) as saver:
            yield saver
    elif store == "postgres":
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(os.environ["DATABASE_URL"]) as saver:
            saver.setup()
            yield saver
    else:
        from langgraph.checkpoint.redis import RedisSaver
        from redisvl.exceptions import RedisSearchError

        with RedisSaver.from_conn_string(os.environ["REDIS_URL"]) as saver:
            try:
                saver.setup()
            except RedisSearchError as error:
                if "unknown command" not in str(error):
                    raise
                sys.exit(NO_MODULES)
            yield saver


def main() -> int:
    """Live one life; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    stores = ("sqlite", "postgres", "redis")
    parser.add_argument("--store", choices=stores, required=True)
    parser.add_argument("--durability", choices=("sync", "async", "exit"))
    parser.add_argument("--thread", required=True)
    parser.add_argument("--goal")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--answer")
    parser.add_argument("--inspect", action="store_true")
    args = parser.parse_args()
    config = {"configurable": {"thread_id": args.thread}}
    with _saver(args.store) as saver:
        tools = [find_price, book, pay, ask_human]
        graph = create_agent(ChatOpenAI(model="gpt-4.1"), tools, checkpointer=saver)
        if args.inspect:
            return _inspect(graph, config)
        given: object = {"messages": [("user", args.goal)]}
        if args.answer is not None:
            given = Command(resume=args.answer)
        elif args.resume and graph.get_state(config).created_at:
            given = None
        state = graph.invoke(given, config, durability=args.durability)
    if "__interrupt__" in state:
        return PARKED
    print(state["messages"][-1].text)
    return DONE


def _inspect(graph: object, config: dict) -> int:
    """The newest checkpoint alone, without the pending writes beside it."""
    state = graph.get_state(graph.get_state(config).config)
    found = state.created_at is not None
    waits = any(task.interrupts for task in state.tasks)
    status = "parked" if waits else "running" if state.next else "done"
    seen = {
        "checkpoint_id": state.metadata["step"] + 2 if found else 0,
        "status": status if found else None,
        "transcript": convert_to_openai_messages(state.values.get("messages", [])),
    }
    print(json.dumps(seen))
    return DONE


if __name__ == "__main__":
    sys.exit(main())
