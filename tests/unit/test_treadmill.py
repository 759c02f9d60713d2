"""Treadmill: each life ends a step further than those before it."""

import pytest

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.strikes import Strikes
from chaoskit.explore.treadmill import Treadmill
from chaoskit.model.faults import FaultKind, Wanted
from chaoskit.model.schedule import Schedule
from chaoskit.model.visit import Visit, Visited

MESSAGES = [
    ("redis", "get", "x"),
    ("llm", "chat", None),
    ("tools", "pay", "o-1"),
    ("redis", "set", "x"),
]


@pytest.fixture
def last(play):
    """The last visit of a treadmill, and how many there were."""

    def walk(*messages):
        baseline = Baseline(*(play(Schedule(), *messages).trial for _ in range(2)))
        mill = Treadmill(Strikes((Wanted(FaultKind.KILL),)))
        queue, count, newest = [*mill.first(baseline)], 0, None
        while queue:
            (visit,) = queue
            newest, count = play(visit.schedule, *messages), count + 1
            queue = [*mill.after(newest)]
        return newest, count

    return walk


def test_one_run_is_killed_at_every_crossing_of_it(last):
    newest, count = last(*MESSAGES)
    struck = [str(fault.at).partition(":")[2] for fault in newest.trial.kills]
    edges = [
        f"{service}.{op}{f'[{key}]' if key else ''}#1:{edge}"
        for service, op, key in MESSAGES
        for edge in ("before", "after")
    ]
    assert struck == edges
    assert count == len(edges)


def test_each_life_is_struck_once_and_the_run_still_ends(last):
    newest, _ = last(*MESSAGES)
    lives = [fault.at.life for fault in newest.trial.kills]
    assert lives == list(range(len(lives)))
    assert newest.trial.ended.outcome == "done"
    assert not newest.trial.unfired


def test_the_same_message_further_on_is_another_crossing(told):
    """A question is known by its turn, though each life asks it first."""
    story = told().ask(0, reply=False).killed().resume().ask(0).killed()
    story.resume().ask(1).done()
    trial = story.trial()
    mill = Treadmill(Strikes((Wanted(FaultKind.KILL),)))
    list(mill.first(Baseline(trial, trial)))
    (visit,) = mill.after(Visited(Visit(trial.schedule), trial))
    assert str(visit.schedule.faults[-1]) == "kill@2:llm.chat#1:before"
