"""A clock that is set forth or back does not bring old things before new ones."""

from collections.abc import Callable

import pytest

from reference_agent.conformance.bench import LONG, Bench, Opener, loaded, taken
from reference_agent.stores.base import Fenced, Store

StepClock = Callable[[float], None]
DAY = 86_400.0


class ClockConformance(Bench):
    """For stores whose clock a test can set."""

    @pytest.fixture
    def step_clock(self, monkeypatch: pytest.MonkeyPatch) -> StepClock:
        """Sets the clock of the store by so many seconds, from where it is now.

        As it is here it is for stores that call ``time.time`` or ``time.time_ns``.
        """

        def step(seconds: float) -> None:
            import time

            seconds_now, nanoseconds_now = time.time, time.time_ns
            ahead = int(seconds * 1e9)
            monkeypatch.setattr(time, "time", lambda: seconds_now() + seconds)
            monkeypatch.setattr(time, "time_ns", lambda: nanoseconds_now() + ahead)

        return step

    def test_the_clock_can_be_set(self, store: Store, step_clock: StepClock) -> None:
        """Or the rest of these tests would show nothing."""
        before = store.now()
        step_clock(DAY)
        assert store.now() > before + DAY / 2

    @pytest.mark.parametrize("seconds", [-DAY, -1.0, DAY])
    def test_tokens_rise_and_the_newest_comes_back(
        self, opened: Opener, step_clock: StepClock, seconds: float
    ) -> None:
        """Whatever the clock says, also to who opens the store after the step."""
        opened().create("r", {"n": 0})
        tokens = []
        for number in range(1, 5):
            store = opened()
            held = taken(store, "r", str(number), over=str(number - 1))
            assert held.document == {"n": number - 1}
            tokens.append(held.token)
            store.save("r", held.token, {"n": number - 0.5})
            step_clock(seconds)
            store.save("r", held.token, {"n": number})
            assert loaded(opened(), "r").document == {"n": number}
        assert tokens == sorted(set(tokens))
        for stale in tokens[:-1]:
            with pytest.raises(Fenced):
                opened().save("r", stale, {"n": "stale"})

    def test_a_lease_ends_by_the_clock(
        self, store: Store, step_clock: StepClock
    ) -> None:
        """An hour has passed when the clock says so."""
        store.create("r", {})
        taken(store, "r", "a")
        step_clock(LONG - 60)
        assert store.take("r", "b", LONG) is None
        step_clock(120.0)
        assert loaded(store, "r").owner is None
        assert taken(store, "r", "b").owner == "b"
