"""A file for the conversation, and a lock file so that no two lives write to it."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaoskit.selftest import kit


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock; it is taken off at the end, unless there is no end."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        raise SystemExit(f"{path.name} exists: another process has the run") from None
    try:
        yield
    finally:
        path.unlink()


def live(words: kit.Words, path: Path) -> str:
    """From what the file says to the end."""
    fresh = [kit.user(words.goal)]
    messages = json.loads(path.read_text()) if path.exists() else fresh
    while not kit.is_over(messages):
        for position, call in enumerate(kit.unanswered(messages)):
            key = f"{words.run}/{kit.turn_of(messages)}/{position}"
            messages.append(kit.result(call, kit.tool(call.tool, call.args, key)))
            save(path, messages)
        messages.append(kit.ask(messages))
        save(path, messages)
    return str(messages[-1]["content"])


def save(path: Path, messages: list[kit.Message]) -> None:
    """A new file, renamed over the old one."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(messages))
    new.rename(path)


def main() -> int:
    """One life."""
    words, folder = kit.words(), Path(os.environ["CHAOSKIT_STATE_DIR"])
    with locked(folder / f"{words.run}.lock"):
        return kit.finish(live(words, folder / f"{words.run}.json"))
