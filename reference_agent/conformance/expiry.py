"""A run that nobody touches goes away whole; one that somebody works on stays."""

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
from reference_agent.stores.base import Fenced, Store


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
        store.create("r", filled(1))
        token = taken(store, "r", "a").token
        store.save("r", token, filled(2), keep=held)
        whole = loaded(store, "r")

        def gone() -> bool:
            found = store.load("r")
            assert found in (whole, None)
            return found is None

        self.until(gone, "the run to expire")
        self._nothing_is_left(store, token)
        store.close()

    def _nothing_is_left(self, store: Store, token: int) -> None:
        assert not is_due(store, "r")
        assert store.take("r", "b", LONG) is None
        with pytest.raises(Fenced):
            store.save("r", token, filled(3))
        assert store.load("r") is None
        assert store.create("r", filled(4)) is True
        held = taken(store, "r", "b")
        assert (held.document, held.takes) == (filled(4), 1)
        assert held.token > token, "a token that somebody may still hold came again"

    @pytest.mark.parametrize("by", ["saves", "takes"])
    def test_work_keeps_it(self, open_expiring: Opener, by: str) -> None:
        """Each write counts for all of it, also long after the run was created."""
        store = open_expiring()
        for attempt in range(20):
            if self._was_kept(store, f"r{attempt}", by):
                break
        else:
            raise AssertionError("this machine was too slow, 20 times, to tell")
        store.close()

    def _was_kept(self, store: Store, run_id: str, by: str) -> bool:
        """False if the machine was so slow that the run could rightly go."""
        store.create(run_id, filled(0))
        start = last = store.now()
        token = taken(store, run_id, "a").token
        while store.now() < start + 2.5:
            held = store.load(run_id)
            if store.now() > last + 0.8:
                return False
            assert held is not None, "it expired while somebody worked on it"
            assert held.owner == "a", "its lease expired on its own"
            last = store.now()
            if by == "saves":
                store.save(run_id, token, filled(1))
            else:
                token = taken(store, run_id, "a", over="a").token
        return is_due(store, run_id) or store.now() > last + 0.8
