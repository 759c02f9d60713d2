"""A fault that found nothing to strike, and the trial that made up for it."""

from dataclasses import replace

import pytest

from chaoskit.campaign.missed import doubts_left, is_a_race, made_good
from chaoskit.campaign.tally import Tally
from chaoskit.checks import Judgement, never_fired
from chaoskit.model.faults import FaultKind
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


@pytest.fixture
def killed(told):
    """A trial whose life died of the kill, or had ended by itself before that came."""

    def trial(*, in_time):
        story = told().cross("redis", "set", "beat")
        if in_time:
            story.killed()
        else:
            story.struck(FaultKind.KILL).end("died", "fault", code=0)
        return story.resume().done().trial()

    return trial


@pytest.mark.parametrize("order", [(True, False), (False, True), (False, False, True)])
def test_a_kill_that_came_too_late_is_made_good_by_one_in_time(killed, order):
    """At a store, too: it is the same message, and the life was at its end."""
    trials = [killed(in_time=in_time) for in_time in order]
    assert [is_a_race(each) for each in trials] == [not each for each in order]
    assert weighed(*trials) == ()
    assert made_good(trials) == {trials[0].schedule}


def test_one_that_always_comes_too_late_stays_a_doubt(killed):
    trial = killed(in_time=False)
    (doubt,) = weighed(trial, trial)
    assert "ended with code 0 before that came" in doubt
    assert doubts_left(trial, judged(trial)) == (doubt,)
    assert weighed(trial, killed(in_time=True), tries_again=False) == (doubt,)
