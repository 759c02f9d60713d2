"""A run that nobody touches goes away whole; one that somebody works on stays."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from reference_agent.conformance.bench import (
    LONG,
    Bench,
    Opener,
    filled,
    is_due,
    loaded,
    taken,
)
from reference_agent.stores.base import Fenced, Held, Store

T = TypeVar("T")

ATTEMPTS = 20
SURE = 0.8
"""Seconds after a write until which a run that goes after one must still be there."""


class _Attempt:
    """Work on a run of its own, and whether that went on without a pause."""

    def __init__(self, store: Store, run_id: str) -> None:
        self.run_id = run_id
        self.was_slow = False
        self._store = store
        self._last = store.now()

    def wrote(self) -> None:
        """The run goes a second after this, and not before."""
        now = self._store.now()
        self.was_slow = self.was_slow or now > self._last + SURE
        self._last = now


class ExpiryConformance(Bench):
    """For stores that keep a run for a time only."""

    @pytest.fixture
    def open_expiring(self) -> Opener:
        """As `open_store`, but a run goes after one second that nobody wrote to it."""
        raise NotImplementedError("give your class a fixture `open_expiring`")

    @pytest.mark.parametrize("held", [True, False])
    def test_it_goes_whole(self, open_expiring: Opener, *, held: bool) -> None:
        """Document, lease, takes and wake-up: all are there, and then none is."""
        store = open_expiring()

        def begin(attempt: _Attempt) -> tuple[str, int, Held]:
            run_id = attempt.run_id
            store.create(run_id, filled(1))
            token = taken(store, run_id, "a").token
            store.save(run_id, token, filled(2), keep=held)
            return run_id, token, loaded(store, run_id)

        run_id, token, whole = _without_a_pause(store, begin)

        def gone() -> bool:
            found = store.load(run_id)
            assert found in (whole, None)
            return found is None

        self.until(gone, "the run to expire")
        self._nothing_is_left(store, run_id, token)
        store.close()

    def _nothing_is_left(self, store: Store, run_id: str, token: int) -> None:
        assert not is_due(store, run_id)
        assert store.take(run_id, "b", LONG) is None
        with pytest.raises(Fenced):
            store.save(run_id, token, filled(3))
        assert store.load(run_id) is None

        def begin_anew(_: _Attempt) -> Held:
            assert store.create(run_id, filled(4)) is True
            return taken(store, run_id, "b")

        held = _without_a_pause(store, begin_anew)
        assert (held.document, held.takes) == (filled(4), 1)
        assert held.token > token, "a token that somebody may still hold came again"

    @pytest.mark.parametrize("by", ["saves", "takes"])
    def test_work_keeps_it(self, open_expiring: Opener, by: str) -> None:
        """Each write counts for all of it, also long after the run was created."""
        store = open_expiring()

        def work(attempt: _Attempt) -> None:
            run_id, end = attempt.run_id, store.now() + 2.5
            store.create(run_id, filled(0))
            token = taken(store, run_id, "a").token
            while store.now() < end:
                attempt.wrote()
                assert loaded(store, run_id).owner == "a", "its lease expired alone"
                if by == "saves":
                    store.save(run_id, token, filled(1))
                else:
                    token = taken(store, run_id, "a", over="a").token
            assert is_due(store, run_id)

        _without_a_pause(store, work)
        store.close()


def _without_a_pause(store: Store, work: Callable[[_Attempt], T]) -> T:
    """What the work gives; done again where it failed because of a pause.

    Between two writes the machine may take so long that the run rightly goes.
    """
    for number in range(ATTEMPTS):
        attempt = _Attempt(store, f"r{number}")
        try:
            return work(attempt)
        except (AssertionError, Fenced):
            attempt.wrote()
            if not attempt.was_slow:
                raise
    raise AssertionError(f"this machine was too slow, {ATTEMPTS} times, to tell")
