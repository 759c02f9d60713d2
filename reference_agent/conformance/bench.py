"""What all parts of the suite share: handles, workers, and patience."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from multiprocessing.connection import Pipe
from threading import Event, Thread
from typing import Any, ClassVar

import pytest

from reference_agent.conformance.nursery import Child, Nursery, perform
from reference_agent.stores.base import Document, Held, Store

Opener = Callable[[], Store]
Start = Callable[..., Child]

LONG = 3600.0
"""Seconds of a lease that no test outlives."""


class Bench:
    """A suite gives `open_store`; the rest follows from it."""

    patience: ClassVar[float] = 60.0
    """Seconds after which what has not happened is taken never to happen."""

    @pytest.fixture
    def open_store(self) -> Opener:
        """What opens one more handle on the same data; can be pickled."""
        raise NotImplementedError(
            "give your class a fixture `open_store` that returns what opens a handle,"
            " such as partial(MyStore, tmp_path)"
        )

    @pytest.fixture
    def opened(self, open_store: Opener) -> Iterator[Opener]:
        """Opens handles that are closed when the test ends."""
        with ExitStack() as stack:

            def opened() -> Store:
                store = open_store()
                stack.callback(store.close)
                return store

            yield opened

    @pytest.fixture
    def store(self, opened: Opener) -> Store:
        """A handle."""
        return opened()

    @pytest.fixture(scope="class")
    @classmethod
    def nursery(cls) -> Iterator[Nursery]:
        """Where processes come from."""
        with Nursery() as nursery:
            yield nursery

    @pytest.fixture
    def effort(self, request: pytest.FixtureRequest) -> int:
        """How many times as much as usual: ten, where there is a ``--full``."""
        return 10 if request.config.getoption("--full", default=False) else 1

    def until(self, seen: Callable[[], Any], what: str) -> Any:
        """Look again and again until something is seen."""
        pause = Event()
        for _ in range(int(self.patience / 0.005)):
            if found := seen():
                return found
            pause.wait(0.005)
        raise AssertionError(f"for {self.patience} seconds in vain: {what}")


def start_thread(deed: Callable[..., None], *arguments: object) -> Child:
    """Do it in a thread of the test; it must end by itself."""
    ours, theirs = Pipe()
    Thread(target=perform, args=(theirs, deed, *arguments), daemon=True).start()
    return Child(ours, 0)


def loaded(store: Store, run_id: str) -> Held:
    """The run, which must be there."""
    held = store.load(run_id)
    assert held is not None, f"{run_id!r} is not there"
    return held


def taken(store: Store, run_id: str, owner: str, over: str | None = None) -> Held:
    """The run under a long lease, which must be to be had."""
    held = store.take(run_id, owner, LONG, over=over)
    assert held is not None, f"{run_id!r} is not to be had"
    return held


def is_due(store: Store, run_id: str) -> bool:
    """Whether it is among those that are due."""
    return run_id in [due.run_id for due in store.due()]


def everything(store: Store, run_id: str) -> tuple[object, ...]:
    """All that can be seen of a run."""
    listed = [due for due in store.due() if due.run_id == run_id]
    return (store.load(run_id), listed)


def same(one: object, other: object) -> bool:
    """Equal, and of the same types all the way down; -0.0 is not 0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        alike = one.keys() == other.keys()
        return alike and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other) if isinstance(one, float) else one == other


def filled(number: int, size: int = 500) -> Document:
    """A document of which every part tells its number."""
    return {"number": number, "parts": [number] * size, "text": f"{number} " * size}
