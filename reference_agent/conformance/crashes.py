"""Killed in the middle of whatever it does, a worker leaves all of it, or nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Event
from time import perf_counter
from typing import Any

import pytest

from reference_agent.conformance import deeds
from reference_agent.conformance.bench import (
    LONG,
    Bench,
    Opener,
    filled,
    is_due,
    loaded,
    taken,
)
from reference_agent.conformance.nursery import Child, Nursery
from reference_agent.stores.base import Store

OLD, NEW = filled(1), filled(2)

View = tuple[Any, str | None, int, bool]
"""Document, owner, takes and whether it is due."""


def _create(run_id: str, token: int, store: Store) -> None:
    store.create(run_id, OLD)


def _take(run_id: str, token: int, store: Store) -> None:
    store.take(run_id, "second", LONG, over="first")


def _save(run_id: str, token: int, store: Store) -> None:
    store.save(run_id, token, NEW)


def _finish(run_id: str, token: int, store: Store) -> None:
    store.save(run_id, token, NEW, wake_at=None, keep=False)


def _release(run_id: str, token: int, store: Store) -> None:
    store.release(run_id, token)


@dataclass(frozen=True)
class Case:
    """An operation, and how a run looks before it and after it."""

    operation: Callable[[str, int, Store], None]
    before: View | None
    after: View


HELD: View = (OLD, "first", 1, True)
CASES = {
    "create": Case(_create, None, (OLD, None, 0, True)),
    "take": Case(_take, HELD, (OLD, "second", 2, True)),
    "save": Case(_save, HELD, (NEW, "first", 0, True)),
    "finish": Case(_finish, HELD, (NEW, None, 0, False)),
    "release": Case(_release, HELD, (OLD, None, 1, True)),
}


class Crashes(Bench):
    """SIGKILL, to real processes, many times."""

    @pytest.mark.parametrize("name", CASES)
    def test_killed_at_any_call_it_is_whole_or_not_at_all(
        self, name: str, open_store: Opener, nursery: Nursery, effort: int
    ) -> None:
        """At each place where the operation reaches out of Python, or many of them."""
        calls = self._do(name, "counted", open_store, nursery, 0)
        assert calls, f"{name} reached nothing outside of Python"
        most = min(calls, 16 * effort)
        for turn in range(most):
            at = 1 + turn * (calls - 1) // max(1, most - 1)
            run_id = f"{name} {at}"
            self._do(name, run_id, open_store, nursery, at)
            store = open_store()
            seen = _view(store, run_id)
            assert seen in (CASES[name].before, CASES[name].after), f"at call {at}"
            _goes_on(store, run_id)
            store.close()

    def _do(
        self, name: str, run_id: str, open_store: Opener, nursery: Nursery, at: int
    ) -> int:
        token, store = 0, open_store()
        if CASES[name].before is not None:
            store.create(run_id, OLD)
            token = taken(store, run_id, "first").token
        store.close()
        operation = partial(CASES[name].operation, run_id, token)
        child = nursery.start(deeds.do_and_die, open_store, operation, at)
        said: list[int] = child.rest()
        return said[0] if said else 0

    def test_killed_at_any_time_nothing_acknowledged_is_lost(
        self, open_store: Opener, nursery: Nursery, effort: int
    ) -> None:
        """The last save that was acknowledged is there, or the one after it, whole."""
        store = open_store()
        store.create("r", filled(0))
        store.close()
        rounds = 20 * effort
        for turn in range(rounds):
            saver = nursery.start(deeds.save_on_and_on, open_store, "r", filled)
            number = _kill_while_saving(saver, turn / rounds)
            store = open_store()
            document = loaded(store, "r").document
            assert document in (filled(number), filled(number + 1))
            assert taken(store, "r", "saver", over="saver").document == document
            store.close()

    def test_a_worker_that_was_killed_blocks_nobody(
        self, open_store: Opener, opened: Opener, nursery: Nursery
    ) -> None:
        """Its other runs, new ones, and its own after its time."""
        opened().create("r", filled(0))
        saver = nursery.start(deeds.save_on_and_on, open_store, "r", filled)
        saver.hear()
        saver.kill()
        store = opened()
        assert store.create("other", {}) is True
        taken(store, "other", "b")
        assert store.take("r", "b", LONG) is None
        _goes_on(store, "r")


def _kill_while_saving(saver: Child, part: float) -> int:
    """Kill it in the middle of a save; the number of the last acknowledged one."""
    saver.hear()
    start = perf_counter()
    number: int = saver.hear()
    # Where in a save it dies is all that this pause decides.
    Event().wait(part * (perf_counter() - start))
    heard: list[int] = saver.kill()
    return max([number, *heard])


def _view(store: Store, run_id: str) -> View | None:
    held = store.load(run_id)
    due = is_due(store, run_id)
    if held is None:
        assert not due, "due, but not there"
        return None
    return (held.document, held.owner, held.takes, due)


def _goes_on(store: Store, run_id: str) -> None:
    """The next one can work with what was left."""
    seen = store.load(run_id)
    if seen is None:
        assert store.create(run_id, OLD) is True
        seen = loaded(store, run_id)
    else:
        assert store.create(run_id, OLD) is False
    held = taken(store, run_id, "third", over=seen.owner)
    assert held.document == seen.document
    assert held.token > seen.token
    store.save(run_id, held.token, filled(3))
    assert loaded(store, run_id).document == filled(3)
