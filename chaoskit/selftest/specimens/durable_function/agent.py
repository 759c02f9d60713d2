"""A durable function: a generator whose steps are recorded, and replayed after a death.

The agent proper is `converse`, which never hears of stores: it yields what is to be
done, and is sent what came of it, now or in an earlier life.
"""

import json
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from chaoskit.selftest import kit


@dataclass(frozen=True)
class Step:
    """Something to be done once; the name is the same in every life."""

    name: str
    do: Callable[[], Any]


def converse(run: str, goal: str) -> Generator[Step, Any, str]:
    """The agent proper."""
    messages = [kit.user(goal)]
    while not kit.is_over(messages):
        turn = len(messages)
        messages.append((yield Step(f"ask-{turn}", partial(kit.ask, list(messages)))))
        for position, call in enumerate(kit.calls(messages[-1])):
            name = f"call-{turn}-{position}"
            act = partial(kit.tool, call.tool, call.args, f"{run}/{name}")
            messages.append(kit.result(call, (yield Step(name, act))))
    return str(messages[-1]["content"])


class Journal:
    """The steps that were done: a file that is replaced, synced, with all of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: list[Any] = json.loads(path.read_text()) if path.exists() else []
        if self.done:
            self.sync(path)
            self.sync(path.parent)

    def sync(self, path: Path) -> None:
        """Make a file's content durable, or the names in a folder."""
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    def record(self, name: str, result: Any) -> None:
        """Durable once it returns."""
        self.done.append([name, result])
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.done))
        self.sync(new)
        new.rename(self.path)
        self.sync(self.path.parent)


def drive(function: Generator[Step, Any, str], journal: Journal) -> str:
    """Replay what is known, then do what is not; returns what it returns."""
    place, result = 0, None
    while True:
        try:
            step = function.send(result)
        except StopIteration as stop:
            return str(stop.value)
        if place == len(journal.done):
            journal.record(step.name, step.do())
        name, result = journal.done[place]
        if name != step.name:
            kit.fail(f"step {place} was {name} and is {step.name} now")
        place += 1


def main() -> int:
    """One life."""
    words = kit.words()
    path = Path(os.environ["CHAOSKIT_STATE_DIR"], f"{words.run}.json")
    return kit.finish(drive(converse(words.run, words.goal), Journal(path)))
