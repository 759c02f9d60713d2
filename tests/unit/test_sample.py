"""Sample: random walks that the seed alone decides, each schedule once."""

from dataclasses import replace

import pytest

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.sample import FAULTS_MAX, Sample
from chaoskit.explore.strikes import Strikes
from chaoskit.model.faults import FaultKind, Wanted
from chaoskit.model.schedule import Schedule
from chaoskit.model.visit import Visited

KILL = Strikes((Wanted(FaultKind.KILL),))
MESSAGES = [("llm", "chat", None), ("redis", "set", "x"), ("tools", "pay", "o-1")]


@pytest.fixture
def run(play):
    return lambda schedule: play(schedule, *MESSAGES)


@pytest.fixture
def walk(run):
    """The schedules that a campaign of samples visits."""

    def visit(seed, trials, run=run):
        baseline = Baseline(*(run(Schedule()).trial for _ in range(2)))
        sample = Sample(KILL, seed, trials)
        queue, done = list(sample.first(baseline)), []
        for visit in queue:
            visited = run(visit.schedule)
            assert not visited.trial.unfired
            done.append(visit.schedule)
            queue += sample.after(visited)
        return done

    return visit


def test_the_same_seed_gives_the_same_schedules(walk):
    assert walk(7, 60) == walk(7, 60)
    assert walk(7, 60) != walk(8, 60)


def test_more_trials_begin_with_the_same_steps(walk):
    few, many = walk(3, 4), walk(3, 200)
    assert set(few) <= set(many)


@pytest.mark.parametrize("trials", [1, 5, 60, 200])
def test_no_schedule_twice_and_never_more_than_asked_for(walk, trials):
    schedules = walk(0, trials)
    assert len(set(schedules)) == len(schedules)
    assert 0 < len(schedules) <= trials


def test_trials_that_are_asked_for_are_made(walk):
    """Walks that begin alike part again: 6 first steps are not the end of it."""
    assert len(walk(0, 60)) == 60


def test_a_walk_kills_several_times_each_in_a_later_life(walk):
    schedules = walk(1, 200)
    assert {len(schedule) for schedule in schedules} == set(range(1, FAULTS_MAX + 1))
    for schedule in schedules:
        lives = [fault.at.life for fault in schedule.faults]
        assert lives == list(range(len(lives)))
        shorter = Schedule(schedule.faults[:-1])
        assert not shorter.faults or shorter in schedules


def test_no_walk_goes_further_than_it_may(walk, play):
    schedules = walk(0, 500, lambda schedule: play(schedule, MESSAGES[0]))
    assert max(map(len, schedules)) == FAULTS_MAX
    assert len(schedules) <= 2 + 4 + 8 + 16


def test_a_fault_that_did_not_fire_leads_nowhere(run):
    sample = Sample(KILL, 0, 50)
    clean = run(Schedule())
    first = list(sample.first(Baseline(clean.trial, clean.trial)))
    missed = run(Schedule.parse("kill@0:llm.chat#9:before"))
    trial = replace(clean.trial, unfired=missed.trial.unfired)
    assert not [v for visit in first for v in sample.after(Visited(visit, trial))]


def test_every_crossing_has_its_turn(walk):
    first = {str(schedule) for schedule in walk(0, 200) if len(schedule) == 1}
    assert len(first) == 2 * len(MESSAGES)


def test_a_run_without_crossings_gives_nothing(walk, play):
    assert walk(0, 10, play) == []
