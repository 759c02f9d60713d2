"""What workers of the suite do, each in a process or thread of its own.

Each has a channel to the test as its first argument, opens its own handle, says so, and
begins when it is told to.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from multiprocessing.connection import Connection
from threading import Event
from time import monotonic
from types import FrameType
from typing import Any

from reference_agent.stores.base import Fenced, Store

Opener = Callable[[], Store]
LONG = 3600.0


def _ready(channel: Connection) -> None:
    channel.send("ready")
    channel.recv()


def save_on_and_on(
    channel: Connection,
    open_store: Opener,
    run_id: str,
    document_of: Callable[[int], dict[str, Any]],
) -> None:
    """Take the run over and save number after number, each said when it is safe."""
    with closing(open_store()) as store:
        held = store.take(run_id, "saver", LONG, over="saver")
        assert held is not None
        for number in count(held.document["number"] + 1):
            store.save(run_id, held.token, document_of(number))
            channel.send(number)


def do_and_die(
    channel: Connection,
    open_store: Opener,
    operation: Callable[[Store], object],
    last_call: int,
) -> None:
    """Do it, and be killed at that call into the world; say the number of calls."""
    with closing(open_store()) as store:
        store.load("warm")  # connecting is no part of the operation
        calls = _Calls(last_call)
        sys.setprofile(calls)
        try:
            operation(store)
        finally:
            sys.setprofile(None)
        channel.send(calls.number)


class _Calls:
    """Counts calls of what is written in C, and ends the process at one of them."""

    def __init__(self, last: int) -> None:
        self.number = 0
        self._last = last

    def __call__(self, frame: FrameType, event: str, called: object) -> None:
        if event == "c_call" and _reaches_out(called):
            self.number += 1
            if self.number == self._last:
                os.kill(os.getpid(), signal.SIGKILL)


def _reaches_out(called: object) -> bool:
    """Texts, lists and plain functions stay in the process; the rest may not."""
    owner = getattr(called, "__self__", None)
    home = owner if hasattr(owner, "__spec__") else type(owner)
    name = getattr(home, "__name__" if home is owner else "__module__", "")
    return name not in {"builtins", "time", "_json", "_thread", "itertools", "re"}


def take_in_step(channel: Connection, open_store: Opener, owner: str) -> None:
    """Try to take run after run, all workers at once; say each token that was got."""
    with closing(open_store()) as store:
        for run_id in _in_step(channel):
            held = store.take(run_id, owner, LONG)
            channel.send(held.token if held else None)


def create_in_step(channel: Connection, open_store: Opener, owner: str) -> None:
    """Try to create run after run, all workers at once; say each time if it was new."""
    with closing(open_store()) as store:
        for run_id in _in_step(channel):
            document = {"by": owner, "parts": [owner] * 200}
            channel.send(store.create(run_id, document))


def _in_step(channel: Connection) -> Iterator[str]:
    channel.send("ready")
    while told := channel.recv():
        run_id, moment = told
        while monotonic() < moment:  # who slept until then would come late
            pass
        yield run_id


def add_in_turn(
    channel: Connection, open_store: Opener, owner: str, run_id: str, times: int
) -> None:
    """Take, add one line, save and let go; say the lines, once each is safe."""
    with closing(open_store()) as store:
        _ready(channel)
        done: list[list[Any]] = []
        while len(done) < times:
            held = store.take(run_id, owner, LONG)
            if held is None:
                Event().wait(0.001)
                continue
            line = [owner, len(done), held.token]
            lines = [*held.document["lines"], line]
            store.save(run_id, held.token, {"lines": lines}, keep=False)
            done.append(line)
        channel.send(done)


def add_by_force(
    channel: Connection, open_store: Opener, owner: str, run_id: str, times: int
) -> None:
    """Take the run over from whoever has it, and add lines until somebody does so.

    Says the lines that are safe, and those that were fenced off.
    """
    with closing(open_store()) as store:
        _ready(channel)
        safe: list[list[Any]] = []
        fenced: list[list[Any]] = []
        for turn in range(times):
            _add_until_fenced(store, owner, run_id, turn, safe, fenced)
        channel.send((safe, fenced))


def _add_until_fenced(
    store: Store,
    owner: str,
    run_id: str,
    turn: int,
    safe: list[list[Any]],
    fenced: list[list[Any]],
) -> None:
    seen = store.load(run_id)
    assert seen is not None
    held = store.take(run_id, owner, LONG, over=seen.owner)
    lines = held.document["lines"] if held else []
    for number in range(3 if held else 0):
        assert held is not None
        line = [owner, turn, number, held.token]
        try:
            store.save(run_id, held.token, {"lines": [*lines, line]})
        except Fenced:
            fenced.append(line)
            return
        lines = [*lines, line]
        safe.append(line)


def wait(
    channel: Connection, open_store: Opener, seconds: float, times: int = 1
) -> None:
    """Say when the waiting begins, and when it is over."""
    with closing(open_store()) as store:
        store.due()
        channel.send("waiting")
        for _ in range(times):
            store.wait(seconds)
        channel.send("done")


def wait_until_due(channel: Connection, open_store: Opener, seconds: float) -> None:
    """Wait, as a worker does, until some run is due."""
    with closing(open_store()) as store:
        channel.send("waiting")
        while not store.due():
            store.wait(seconds)
        channel.send("done")


def create_on_and_on(channel: Connection, open_store: Opener) -> None:
    """One new run after another: whoever waits may begin at any time."""
    with closing(open_store()) as store:
        for number in count():
            store.create(f"new {number}", {})
            Event().wait(0.05)


def wake_on_and_on(channel: Connection, open_store: Opener, run_id: str) -> None:
    """Wake a run and let it rest, again and again."""
    with closing(open_store()) as store:
        while True:
            held = store.take(run_id, "waker", LONG)
            assert held is not None
            store.save(run_id, held.token, {}, wake_at=None)
            store.save(run_id, held.token, {}, keep=False)
            Event().wait(0.05)
