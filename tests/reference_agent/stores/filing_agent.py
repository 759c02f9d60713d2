"""A small agent on the file store, for chaoskit: takes its run over, and goes on.

    filing_agent.py RUN GOAL

Each life comes over the one before. A snapshot is due after four events, so that logs
are moved, too, while chaoskit looks for a place to strike. How it asks and acts is of
`scenarios/kept/kept.py`, which must lie beside it.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from kept import act, ask, unanswered

from reference_agent.stores.base import Fenced, Held
from reference_agent.stores.files import FileStore


def main() -> int:
    """Go on with the run from where the store says, to the end."""
    run, goal = sys.argv[1:]
    store = FileStore(Path(os.environ["CHAOSKIT_STATE_DIR"]), snapshot_every=4)
    begin = {"saved": 0, "messages": [{"role": "user", "content": goal}]}
    store.create(run, begin)
    found = store.load(run)
    assert found is not None, "it was created"
    held = store.take(run, "agent", 60, over=found.owner)
    assert held is not None, "there is nobody else"
    try:
        answer = work(run, store, held)
    except Fenced:
        sys.exit("another life has taken the run over")
    store.close()
    print(answer)
    return 0


def work(run: str, store: FileStore, held: Held) -> str:
    """Ask the model and do what it says, with a save after each step."""
    state = held.document
    messages = state["messages"]
    while True:
        for call in unanswered(messages):
            result = act(run, call)
            messages.append(
                {"role": "tool", "tool_call_id": call["id"], "content": result}
            )
            save(run, store, held, state)
        last = messages[-1]
        if last["role"] == "assistant" and not last.get("tool_calls"):
            store.save(run, held.token, state, wake_at=None, keep=False)
            return str(last["content"])
        messages.append(ask(messages))
        save(run, store, held, state)


def save(run: str, store: FileStore, held: Held, state: dict[str, Any]) -> None:
    """The next checkpoint, and a line of log once it is durable."""
    state["saved"] += 1
    store.save(run, held.token, state)
    line = {"event": "run.checkpoint", "level": "info", "step": len(state["messages"])}
    line |= {"run_id": run, "checkpoint_id": state["saved"]}
    print(json.dumps(line), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
