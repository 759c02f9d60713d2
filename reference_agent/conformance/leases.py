"""One holder at a time; whoever is not the newest changes nothing."""

import pytest

from reference_agent.conformance.bench import (
    LONG,
    Bench,
    Opener,
    everything,
    is_due,
    loaded,
    taken,
)
from reference_agent.stores.base import NOW, Fenced, Held, Store


class Leases(Bench):
    """Take, save, release, and the tokens that tell old from new."""

    @pytest.fixture
    def run(self, store: Store) -> str:
        """A run that was just created."""
        store.create("r", {"n": 0})
        return "r"

    def test_one_at_a_time(self, store: Store, opened: Opener, run: str) -> None:
        """Who comes second gets nothing, by whatever name, and changes nothing."""
        held = taken(store, run, "a")
        assert (held.document, held.owner) == ({"n": 0}, "a")
        before = everything(store, run)
        for handle in (store, opened()):
            assert handle.take(run, "b", LONG) is None
            assert handle.take(run, "b", LONG, over="b") is None
            assert handle.take(run, "b", LONG, over="") is None
            assert handle.take(run, "a", LONG) is None
        assert everything(store, run) == before

    def test_over_takes_from_who_is_gone(self, store: Store, run: str) -> None:
        """`over` is as good as an expired lease, for that owner only."""
        first = taken(store, run, "a")
        second = taken(store, run, "b", over="a")
        assert second.token > first.token
        assert store.take(run, "c", LONG, over="a") is None
        assert loaded(store, run).owner == "b"
        third = taken(store, run, "b", over="b")
        assert third.token > second.token

    def test_over_does_no_harm_where_nobody_holds(self, store: Store, run: str) -> None:
        """The one thought to be gone may have let go, or never have held it."""
        taken(store, run, "a", over="nobody")
        store.release(run, loaded(store, run).token)
        assert taken(store, run, "b", over="a").owner == "b"

    def test_a_stale_token_changes_nothing(
        self, store: Store, opened: Opener, run: str
    ) -> None:
        """Not the document, not the wake-up, not the lease, from no handle."""
        stale = taken(store, run, "a").token
        newer = opened()
        token = taken(newer, run, "b", over="a").token
        newer.save(run, token, {"n": 1}, wake_at=newer.now() - 60)
        before = everything(newer, run)
        for handle in (store, newer, opened()):
            _fenced_in_every_way(handle, run, stale)
            handle.release(run, stale)
            assert everything(newer, run) == before
        newer.save(run, token, {"n": 2})
        assert loaded(store, run).document == {"n": 2}

    def test_a_stale_token_of_the_same_owner_is_stale(
        self, store: Store, run: str
    ) -> None:
        """It is the token that counts, and not the name."""
        stale = taken(store, run, "a").token
        newer = taken(store, run, "a", over="a").token
        with pytest.raises(Fenced):
            store.save(run, stale, {"n": "stale"})
        store.save(run, newer, {"n": 1})
        assert loaded(store, run).document == {"n": 1}

    def test_a_token_stays_stale_when_the_next_has_let_go(
        self, store: Store, run: str
    ) -> None:
        """Nobody holds the run, and still the older token is not the newest."""
        stale = taken(store, run, "a").token
        newer = taken(store, run, "b", over="a").token
        store.save(run, newer, {"n": 1}, wake_at=None, keep=False)
        before = everything(store, run)
        _fenced_in_every_way(store, run, stale)
        assert everything(store, run) == before

    def test_a_token_that_was_never_given_is_no_token(
        self, store: Store, run: str
    ) -> None:
        """Before the first take, beside the newest, and of a run that is not there."""
        before = everything(store, run)
        for token in (-1, 0, 1, 2**62):
            if token != loaded(store, run).token:
                _fenced_in_every_way(store, run, token)
        assert everything(store, run) == before
        token = taken(store, run, "a").token
        before = everything(store, run)
        for wrong in (token - 1, token + 1):
            _fenced_in_every_way(store, run, wrong)
            store.release(run, wrong)
        assert everything(store, run) == before
        _fenced_in_every_way(store, "another", token)
        assert store.load("another") is None

    def test_the_token_of_another_run_is_no_token(self, store: Store, run: str) -> None:
        """Tokens are for one run each."""
        store.create("other", {"n": 0})
        token = taken(store, run, "a").token
        other = taken(store, "other", "a").token
        if token != other:
            _fenced_in_every_way(store, "other", token)
        assert loaded(store, "other").document == {"n": 0}

    def test_tokens_rise(self, open_store: Opener, opened: Opener, run: str) -> None:
        """Over releases, takeovers, saves and reopened handles."""
        tokens = [taken(opened(), run, "0").token]
        for number in range(1, 30):
            store = open_store()
            if number % 3 == 0:
                store.release(run, tokens[-1])
            if number % 3 == 1:
                store.save(run, tokens[-1], {"n": number}, keep=False)
            held = taken(store, run, str(number), over=str(number - 1))
            tokens.append(held.token)
            assert loaded(opened(), run).token == tokens[-1]
            store.close()
        assert all(type(token) is int for token in tokens)
        assert tokens == sorted(set(tokens))

    def test_takes_are_counted_until_a_save(self, store: Store, run: str) -> None:
        """Lives that came to nothing: whoever let go, or was taken from, counts."""
        assert loaded(store, run).takes == 0
        for number in range(1, 13):
            held = taken(store, run, str(number), over=str(number - 1))
            assert held.takes == number
            assert loaded(store, run).takes == number
            if number % 2:
                store.release(run, held.token)
        store.save(run, held.token, {"n": 1}, keep=False)
        assert loaded(store, run).takes == 0
        assert taken(store, run, "a").takes == 1

    def test_a_save_can_end_the_lease(self, store: Store, run: str) -> None:
        """With `keep` False the run is free in the same step."""
        token = taken(store, run, "a").token
        store.save(run, token, {"n": 1}, keep=False)
        held = loaded(store, run)
        assert (held.document, held.owner) == ({"n": 1}, None)
        assert taken(store, run, "b").token > token

    def test_a_release_ends_the_lease_and_nothing_else(
        self, store: Store, run: str
    ) -> None:
        """The document, the wake-up and the takes stay; once is as good as twice."""
        token = taken(store, run, "a").token
        store.save(run, token, {"n": 1}, wake_at=NOW)
        store.release(run, token)
        store.release(run, token)
        held = loaded(store, run)
        assert (held.document, held.owner, held.takes) == ({"n": 1}, None, 0)
        assert is_due(store, run)
        assert taken(store, run, "b").token > token

    def test_a_lease_expires_and_not_before(
        self, store: Store, opened: Opener, run: str
    ) -> None:
        """By the clock of the store; whoever held it is then stale."""
        before = store.now()
        stale = _take(store, run, "a", 0.4)
        other = opened()
        held = self.until(lambda: other.take(run, "b", LONG), "the lease to expire")
        assert other.now() >= before + 0.4
        assert held.token > stale.token
        _fenced_in_every_way(store, run, stale.token)
        assert (held.owner, loaded(store, run).owner) == ("b", "b")

    def test_an_expired_lease_has_no_owner(self, store: Store, run: str) -> None:
        """`load` and `due` tell only who really holds a run."""
        token = _take(store, run, "a", 0.05).token
        self.until(lambda: loaded(store, run).owner is None, "the lease to expire")
        assert [due.owner for due in store.due()] == [None]
        assert loaded(store, run).token == token

    def test_a_save_renews_the_lease_by_its_length(
        self, store: Store, run: str
    ) -> None:
        """It is held at least that long after each save."""
        token = _take(store, run, "a", 0.4).token
        for number in range(3):
            saved = store.now()
            store.save(run, token, {"n": number})
            gone = self.until(lambda: loaded(store, run).owner is None, "expiry")
            assert gone
            assert store.now() >= saved + 0.4

    def test_a_save_after_expiry_is_good_while_nobody_took_the_run(
        self, store: Store, run: str
    ) -> None:
        """The token is still the newest: the work is not lost."""
        token = _take(store, run, "a", 0.05).token
        self.until(lambda: loaded(store, run).owner is None, "the lease to expire")
        store.save(run, token, {"n": 1})
        assert loaded(store, run).document == {"n": 1}
        assert loaded(store, run).token == token

    def test_runs_do_not_share_leases(self, store: Store, run: str) -> None:
        """What happens to one is nothing to another."""
        store.create("other", {"n": 0})
        mine, other = taken(store, run, "a"), taken(store, "other", "b")
        store.save(run, mine.token, {"n": 1}, wake_at=None, keep=False)
        held = loaded(store, "other")
        assert (held.document, held.owner, held.takes) == ({"n": 0}, "b", 1)
        store.save("other", other.token, {"n": 2})
        assert loaded(store, run).document == {"n": 1}


def _take(store: Store, run_id: str, owner: str, seconds: float) -> Held:
    held = store.take(run_id, owner, seconds)
    assert held is not None
    return held


def _fenced_in_every_way(store: Store, run_id: str, token: int) -> None:
    for wake_at in (NOW, None, store.now() + LONG):
        for keep in (True, False):
            with pytest.raises(Fenced):
                store.save(run_id, token, {"n": "no"}, wake_at=wake_at, keep=keep)
