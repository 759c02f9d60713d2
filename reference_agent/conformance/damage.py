"""What cannot be read is not guessed at, and stays as it is."""

from collections.abc import Callable
from contextlib import suppress

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
from reference_agent.stores.base import Store, UnreadableCheckpoint

Damage = Callable[[str, str], Callable[[], object]]


class DamageConformance(Bench):
    """Torn, spoilt and foreign data under the name of a run."""

    @pytest.fixture
    def damage(self) -> Damage:
        """Damages the stored data of a run: ``damage(run_id, how)``.

        What it returns reads that data as it lies there, to see that it stays. How:

        - ``torn``: the end of what was acknowledged is gone;
        - ``spoilt``: bytes in the middle are not what was written;
        - ``foreign``: in its place is something that no store like this one wrote.
        """
        raise NotImplementedError("give your class a fixture `damage`; see its text")

    @pytest.fixture(params=["torn", "spoilt", "foreign"])
    def stored(
        self, request: pytest.FixtureRequest, damage: Damage, store: Store
    ) -> Callable[[], object]:
        """A run `r` that is damaged, beside one that is not."""
        for run_id in ("r", "whole"):
            store.create(run_id, filled(0))
            token = taken(store, run_id, "a").token
            for number in (1, 2, 3):
                store.save(run_id, token, filled(number))
            store.release(run_id, token)
        return damage("r", request.param)

    @pytest.mark.parametrize("fresh", [True, False], ids=["new handle", "same handle"])
    def test_damaged_data_is_unreadable_and_kept(
        self,
        stored: Callable[[], object],
        store: Store,
        opened: Opener,
        *,
        fresh: bool,
    ) -> None:
        """Never None, never taken, never created anew; the same the second time."""
        handle = opened() if fresh else store
        before = stored()
        for _ in range(2):
            with pytest.raises(UnreadableCheckpoint):
                handle.load("r")
            with pytest.raises(UnreadableCheckpoint):
                handle.take("r", "b", LONG)
            with suppress(UnreadableCheckpoint):
                assert handle.create("r", {}) is False
            handle.due()
            assert stored() == before

    def test_the_reason_is_in_words(
        self, stored: Callable[[], object], opened: Opener
    ) -> None:
        """Somebody has to look at it."""
        with pytest.raises(UnreadableCheckpoint, match=r"\w+ \w+"):
            opened().load("r")

    def test_the_others_are_well(
        self, stored: Callable[[], object], opened: Opener
    ) -> None:
        """They are due, can be taken, and new ones come."""
        store = opened()
        assert is_due(store, "whole")
        held = taken(store, "whole", "b")
        assert held.document == filled(3)
        store.save("whole", held.token, filled(4))
        assert loaded(store, "whole").document == filled(4)
        assert store.create("new", {}) is True
