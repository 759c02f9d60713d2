"""A clock that leaps is told from one that is slow to read, and from one slewed."""

import pytest

from chaoskit.gate import Recorder
from chaoskit.gate.drift import LEAP_SECONDS_MIN, Drift
from chaoskit.model.history import ClockLeapt, StatusSeen

NOON = 1_000_000.0


class Clocks:
    """The time of day is ``ahead`` of a clock that only goes on."""

    def __init__(self):
        self.ahead, self.now, self.takes = NOON, 50.0, 0.0

    def look(self):
        before = self.now
        self.now += self.takes
        return before + self.takes / 2 + self.ahead, before, self.now


@pytest.mark.parametrize("seconds", [3600.0, -0.05])
def test_a_leap_is_told_once(seconds):
    clocks = Clocks()
    drift = Drift(clocks.look)
    clocks.ahead += seconds
    assert drift.leap() == pytest.approx(seconds)
    assert drift.leap() == 0.0


def test_a_reading_that_takes_long_is_no_leap():
    clocks = Clocks()
    drift = Drift(clocks.look)
    for clocks.takes in (5.0, 0.0, 600.0):
        assert drift.leap() == 0.0


def test_a_clock_that_is_slewed_has_not_leapt():
    clocks = Clocks()
    drift = Drift(clocks.look)
    clocks.ahead += LEAP_SECONDS_MIN / 2
    assert drift.leap() == 0.0


def test_the_clocks_of_this_machine_agree():
    drift = Drift()
    assert drift.leap() == 0.0


def test_a_leap_is_in_the_history_before_what_it_may_explain():
    clocks = Clocks()
    record = Recorder(drift=Drift(clocks.look))
    for _ in range(2):
        record(StatusSeen(life=-1, status="running"))
        record.crossed(0, "0:llm.chat#1:before")
        clocks.ahead += 1.5
    record.crossed(0, "0:llm.chat#1:after")
    leaps = [e for e in record.events if isinstance(e, ClockLeapt)]
    assert [(e.seq, e.seconds) for e in leaps] == [(2, 1.5), (5, 1.5)]
    assert [e.seq for e in record.events] == list(range(len(record.events)))
