"""A fault that found nothing to strike, and the trial that made up for it."""

from dataclasses import replace

import pytest

from chaoskit.campaign.missed import doubts_left, is_a_race, made_good
from chaoskit.campaign.tally import Tally
from chaoskit.checks import Judgement, never_fired
from chaoskit.model.schedule import Schedule

PAIR = Schedule.parse("kill@0:llm.chat#1:after + kill@1:tools.pay[o-1]#1:after")
SAVE = Schedule.parse("kill@0:llm.chat#1:after + kill@1:redis.set[a]#2:after")


@pytest.fixture
def missing(told):
    """A trial of a schedule whose last fault struck or found nothing."""

    def trial(schedule, *, struck):
        unfired = () if struck else schedule.faults[-1:]
        return replace(told().done().trial(schedule), unfired=unfired)

    return trial


def judged(trial):
    return Judgement(doubts=tuple(map(never_fired, trial.unfired)))


def weighed(*trials, tries_again=True):
    tally = Tally(tries_again=tries_again)
    for trial in trials:
        tally.add(trial, judged(trial))
    return tally.doubts


@pytest.mark.parametrize("order", [(True, False), (False, True), (False, False, True)])
def test_one_trial_that_struck_whole_is_enough(missing, order):
    """In whatever order they come in."""
    trials = [missing(PAIR, struck=struck) for struck in order]
    assert weighed(*trials) == ()
    assert made_good(trials) == {PAIR}


def test_what_never_struck_stays_a_doubt(missing):
    trial = missing(PAIR, struck=False)
    assert weighed(trial, trial) == (never_fired(PAIR.faults[-1]),)
    assert doubts_left(trial, judged(trial), frozenset()) == judged(trial).doubts


def test_what_was_laid_at_a_store_has_to_strike_at_once(missing):
    """Else a heartbeat among the checkpoints would pass for another message."""
    trials = missing(SAVE, struck=False), missing(SAVE, struck=True)
    assert [is_a_race(each) for each in trials] == [False, False]
    assert weighed(*trials) == (never_fired(SAVE.faults[-1]),)


def test_what_was_named_has_to_strike_at_once(missing):
    """A replay, say: whoever names a fault wants to see it strike."""
    trials = missing(PAIR, struck=True), missing(PAIR, struck=False)
    assert weighed(*trials, tries_again=False) == (never_fired(PAIR.faults[-1]),)
