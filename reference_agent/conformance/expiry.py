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
TOO_SLOW = f"this machine was too slow, {ATTEMPTS} times, to tell"
SURE = 0.8
"""Seconds after a write until which a run that goes after one must still be there."""


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

        def begin(run_id: str) -> tuple[str, int, Held]:
            store.create(run_id, filled(1))
            token = taken(store, run_id, "a").token
            store.save(run_id, token, filled(2), keep=held)
            return run_id, token, loaded(store, run_id)

        run_id, token, whole = _before_it_goes(store, begin)

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

        def begin_anew(_: str) -> Held:
            assert store.create(run_id, filled(4)) is True
            return taken(store, run_id, "b")

        held = _before_it_goes(store, begin_anew)
        assert (held.document, held.takes) == (filled(4), 1)
        assert held.token > token, "a token that somebody may still hold came again"

    @pytest.mark.parametrize("by", ["saves", "takes"])
    def test_work_keeps_it(self, open_expiring: Opener, by: str) -> None:
        """Each write counts for all of it, also long after the run was created."""
        store = open_expiring()
        for attempt in range(ATTEMPTS):
            if self._was_kept(store, f"r{attempt}", by):
                break
        else:
            raise AssertionError(TOO_SLOW)
        store.close()

    def _was_kept(self, store: Store, run_id: str, by: str) -> bool:
        """False if the machine was so slow that the run could rightly go."""
        store.create(run_id, filled(0))
        start = last = store.now()
        token = taken(store, run_id, "a").token
        while store.now() < start + 2.5:
            held = store.load(run_id)
            if store.now() > last + SURE:
                return False
            assert held is not None, "it expired while somebody worked on it"
            assert held.owner == "a", "its lease expired on its own"
            last = store.now()
            if by == "saves":
                store.save(run_id, token, filled(1))
            else:
                token = taken(store, run_id, "a", over="a").token
        return is_due(store, run_id) or store.now() > last + SURE


def _before_it_goes(store: Store, begin: Callable[[str], T]) -> T:
    """What that gives for a run; again where the run could rightly go meanwhile."""
    for attempt in range(ATTEMPTS):
        start = store.now()
        try:
            return begin(f"r{attempt}")
        except AssertionError:
            if store.now() <= start + SURE:
                raise
    raise AssertionError(TOO_SLOW)
