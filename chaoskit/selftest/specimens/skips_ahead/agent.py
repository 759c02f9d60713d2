"""A state machine: asking, acting, over; a file says which state comes next."""

import json
import os
from pathlib import Path
from typing import Any

from chaoskit.selftest import kit

State = dict[str, Any]


def save(path: Path, state: State) -> None:
    """Replace the file, whole."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(state))
    new.rename(path)


def asking(state: State, run: str) -> None:
    """Have the model say what comes next."""
    state["messages"].append(kit.ask(state["messages"]))
    state["next"] = "over" if kit.is_over(state["messages"]) else "acting"


def acting(state: State, run: str) -> None:
    """Make the calls."""
    for position, call in enumerate(kit.unanswered(state["messages"])):
        key = f"{run}/{kit.turn_of(state['messages'])}/{position}"
        state["results"][call.id] = kit.tool(call.tool, call.args, key)


def told(state: State) -> None:
    """Add the results; what is not known went well."""
    for call in kit.unanswered(state["messages"]):
        text = state["results"].get(call.id, '"paid"')
        state["messages"].append(kit.result(call, text))


def main() -> int:
    """One life."""
    words = kit.words()
    path = Path(os.environ["CHAOSKIT_STATE_DIR"]) / "state.json"
    fresh = {"next": "asking", "messages": [kit.user(words.goal)], "results": {}}
    state: State = json.loads(path.read_text()) if path.exists() else fresh
    while state["next"] != "over":
        if state["next"] == "acting":
            # Moved on, and saved, before it is done.
            state["next"] = "asking"
            save(path, state)
            acting(state, words.run)
        else:
            told(state)
            asking(state, words.run)
        save(path, state)
    return kit.finish(state["messages"][-1]["content"])
