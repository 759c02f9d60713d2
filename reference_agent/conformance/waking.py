"""Runs are due when their time has come, and who waits for them is told."""

from functools import partial
from time import monotonic

from reference_agent.conformance import deeds
from reference_agent.conformance.bench import (
    LONG,
    Bench,
    Opener,
    is_due,
    loaded,
    start_thread,
    taken,
)
from reference_agent.conformance.nursery import Child, Nursery
from reference_agent.stores.base import Due, Store

HALF_AN_HOUR = 1800.0


class Waking(Bench):
    """`due`, `wait` and `wake_at`."""

    def test_nothing_is_due_at_first(self, store: Store) -> None:
        """An empty store is no error."""
        assert list(store.due()) == []

    def test_a_new_run_is_due_at_once(self, store: Store, opened: Opener) -> None:
        """Every handle sees it, and looking changes nothing."""
        other = opened()
        assert list(other.due()) == []
        store.create("r", {})
        for handle in (other, store, other):
            assert list(handle.due()) == [Due("r", None)]
        assert loaded(store, "r").takes == 0

    def test_leased_ones_are_listed_with_their_owner(self, store: Store) -> None:
        """The caller may know that the owner is gone."""
        store.create("r", {})
        token = taken(store, "r", "a").token
        assert list(store.due()) == [Due("r", "a")]
        store.save("r", token, {})
        assert list(store.due()) == [Due("r", "a")]
        store.release("r", token)
        assert list(store.due()) == [Due("r", None)]

    def test_the_longest_waiting_comes_first(self, store: Store) -> None:
        """By the time of their wake-up: not by name, age or last save."""
        now = store.now()
        since = {"b": 50.0, "d": 40.0, "a": 30.5, "e": 30.25, "c": 9.0, "f": 1.0}
        for run_id in sorted(since):
            store.create(run_id, {})
        for run_id in "cfaedb":
            token = taken(store, run_id, "w").token
            store.save(run_id, token, {}, wake_at=now - since[run_id])
        assert [due.run_id for due in store.due()] == list(since)

    def test_many_are_listed_each_once(self, store: Store) -> None:
        """Past any page that a store may read at a time."""
        names = [f"run {number}" for number in range(150)]
        for name in names:
            store.create(name, {})
        assert sorted(due.run_id for due in store.due()) == sorted(names)

    def test_who_needs_nobody_is_not_due(self, store: Store, opened: Opener) -> None:
        """With `wake_at` None it rests until it is taken by name."""
        store.create("r", {})
        token = taken(store, "r", "a").token
        store.save("r", token, {"n": 1}, wake_at=None, keep=False)
        assert list(store.due()) == list(opened().due()) == []
        held = taken(store, "r", "b")
        assert held.document == {"n": 1}
        assert list(store.due()) == []
        store.save("r", held.token, {"n": 2})
        assert list(store.due()) == [Due("r", "b")]

    def test_a_run_is_due_at_its_time_and_not_before(
        self, store: Store, opened: Opener
    ) -> None:
        """To parts of a second, for a handle that was opened later too."""
        store.create("r", {})
        store.create("later", {})
        token = taken(store, "r", "a").token
        wake_at = store.now() + 0.45
        store.save("r", token, {}, wake_at=wake_at, keep=False)
        later = taken(store, "later", "a").token
        store.save("later", later, {}, wake_at=store.now() + HALF_AN_HOUR, keep=False)
        for handle in (store, opened()):
            self.until(partial(is_due, handle, "r"), "the wake-up")
            assert store.now() >= wake_at
            assert not is_due(handle, "later")

    def test_each_save_sets_the_wake_up(self, store: Store) -> None:
        """The last one counts, sooner or later than the one before."""
        store.create("r", {})
        token = taken(store, "r", "a").token
        for wake_at, due in (
            (store.now() + HALF_AN_HOUR, False),
            (store.now() - 1, True),
            (None, False),
            (0.0, True),
            (store.now() + LONG, False),
        ):
            store.save("r", token, {}, wake_at=wake_at)
            assert is_due(store, "r") is due

    def test_a_take_and_a_release_leave_the_wake_up(self, store: Store) -> None:
        """Whoever takes a run early and dies has not woken it."""
        store.create("r", {})
        token = taken(store, "r", "a").token
        store.save("r", token, {}, wake_at=store.now() + LONG, keep=False)
        store.release("r", taken(store, "r", "b").token)
        assert not is_due(store, "r")

    def test_waiting_ends(self, open_store: Opener) -> None:
        """With nothing to come it takes its time: no spinning, and no hanging."""
        waiter = start_thread(deeds.wait, open_store, 0.1, 10)
        waiter.hear()
        start = monotonic()
        waiter.hear(self.patience)
        assert monotonic() - start > 0.1, "ten times wait(0.1) returned at once"

    def test_a_time_that_comes_ends_the_waiting(
        self, store: Store, open_store: Opener
    ) -> None:
        """Nobody has to do anything for it."""
        store.create("r", {})
        token = taken(store, "r", "a").token
        store.save("r", token, {}, wake_at=store.now() + 1.0, keep=False)
        waiter = start_thread(deeds.wait_until_due, open_store, 10 * self.patience)
        waiter.hear()
        waiter.hear(self.patience)


class NoticeConformance(Bench):
    """For stores whose `wait` notices what others do, and need not be asked again."""

    def test_a_new_run_ends_the_waiting(
        self, open_store: Opener, nursery: Nursery
    ) -> None:
        """That another process created."""
        waiter = start_thread(deeds.wait, open_store, 10 * self.patience)
        waiter.hear()
        creator = nursery.start(deeds.create_on_and_on, open_store)
        self._ended_by(creator, waiter)

    def test_a_wake_up_ends_the_waiting(
        self, store: Store, open_store: Opener, nursery: Nursery
    ) -> None:
        """A run that was waiting for somebody, and that another process woke."""
        store.create("r", {})
        token = taken(store, "r", "a").token
        store.save("r", token, {}, wake_at=None, keep=False)
        waiter = start_thread(deeds.wait, open_store, 10 * self.patience)
        waiter.hear()
        waker = nursery.start(deeds.wake_on_and_on, open_store, "r")
        self._ended_by(waker, waiter)

    def _ended_by(self, other: Child, waiter: Child) -> None:
        try:
            waiter.hear(self.patience)
        finally:
            other.kill()  # which also tells what went wrong with it
