"""Event-sourced: a log of synced lines says all that has happened."""

import json
import os
from pathlib import Path
from typing import Any

from chaoskit.selftest import kit

Event = dict[str, Any]


class Log:
    """Lines of JSON; one that was torn is cut off."""

    def __init__(self, path: Path) -> None:
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        whole = [line for line in lines if line.endswith(b"\n")]
        self.events: list[Event] = [json.loads(line) for line in whole]
        self.file = path.open("ab", buffering=0)
        self.file.truncate(sum(map(len, whole)))

    def add(self, kind: str, **more: Any) -> None:
        """Durable once it returns."""
        event = {"kind": kind, **more}
        self.file.write(json.dumps(event).encode() + b"\n")
        os.fsync(self.file.fileno())
        self.events.append(event)

    def messages(self, goal: str) -> list[kit.Message]:
        """The conversation, told from the events."""
        told = [e["message"] for e in self.events if e["kind"] in ("turn", "result")]
        return [kit.user(goal), *told]

    def has_intent(self, call: kit.Call) -> bool:
        """Whether a life was about to make this call, or had made it."""
        return any(e.get("call") == call.id for e in self.events)


def main() -> int:
    """One life."""
    words = kit.words()
    log = Log(Path(os.environ["CHAOSKIT_STATE_DIR"]) / "events")
    while not kit.is_over(messages := log.messages(words.goal)):
        for call in kit.unanswered(messages):
            # An intent without a result is a doubt; it is taken for "not yet".
            if not log.has_intent(call):
                log.add("intent", call=call.id)
            log.add("result", message=kit.result(call, kit.tool(call.tool, call.args)))
        log.add("turn", message=kit.ask(log.messages(words.goal)))
    return kit.finish(messages[-1]["content"])
