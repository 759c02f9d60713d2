"""A saved trial whose faults are not those of its history proves nothing."""

from types import SimpleNamespace
from typing import Any

import pytest

from chaoskit.campaign.fits import misfits
from chaoskit.model.history import FaultFired
from chaoskit.model.schedule import Fault, Schedule

FIRST = "kill@0:redis.set[x]#1:before"
BEAT = "kill@0:redis.set[alive]#2:after"
BEHIND = "kill@1:redis.set[x]#1:before"


def campaign(*periodic: str, strategy: str = "sweep", only: str | None = None) -> Any:
    report = SimpleNamespace(periodic=periodic, strategy=strategy)
    return SimpleNamespace(report=report, only=only)


def cut_short(only: str | None = None) -> Any:
    return SimpleNamespace(report=None, only=only)


@pytest.fixture
def trial(told):
    """A run that is struck so often, with such a schedule, and said to be so short."""

    def make(*struck, schedule, unfired=(), crosses=()):
        story = told().cross("redis", "set", "x")
        for key in crosses:
            story.cross("redis", "set", key)
        for fault in struck:
            story.add(FaultFired(life=0, fault=fault))
        story.unfired = tuple(map(Fault.parse, unfired))
        return story.done().trial(Schedule.parse(" + ".join(schedule)))

    return make


def odd(trial, of=None):
    return [*misfits(trial, of or campaign())]


LASTING = "error(503)@*:llm.chat#1:before"
FITTING = [
    ((), (), ()),
    ((FIRST,), (FIRST,), ()),
    ((FIRST,), (), (FIRST,)),
    ((FIRST, FIRST), (FIRST,), (FIRST,)),
    ((LASTING,), (LASTING,) * 3, ()),
    ((LASTING, LASTING), (LASTING,), ()),
    ((LASTING, LASTING), (), (LASTING, LASTING)),
]


@pytest.mark.parametrize(("schedule", "struck", "unfired"), FITTING)
def test_what_the_history_shows_fits(trial, schedule, struck, unfired):
    """A fault of every life strikes as often as its message comes by."""
    assert odd(trial(*struck, schedule=schedule, unfired=unfired)) == []


def test_one_that_never_struck_and_is_not_said_so_does_not(trial):
    (said,) = odd(trial(schedule=[FIRST]))
    assert said == (
        f"trial 0001 does not fit together: {FIRST} is scheduled, and by its history "
        "never struck; its trial.json or its history is not what a campaign wrote, so "
        "run the campaign again"
    )
    assert odd(trial(schedule=[LASTING]))


def test_one_that_is_said_so_and_struck_or_was_never_due_does_not(trial):
    (said,) = odd(trial(FIRST, schedule=[FIRST], unfired=[FIRST]))
    assert f"{FIRST} is said never to have struck" in said
    assert odd(trial(schedule=[], unfired=[FIRST]))


def test_one_that_struck_and_is_not_scheduled_does_not(trial):
    for schedule, struck in (([], [FIRST]), ([FIRST], [FIRST] * 2), ([], [LASTING])):
        (said,) = odd(trial(*struck, schedule=schedule))
        assert f"struck {len(struck)} times, which is not what was scheduled" in said


@pytest.mark.parametrize("schedule", [[BEAT], [BEAT, BEHIND]])
def test_a_beat_that_did_not_come_is_excused_with_what_is_behind_it(trial, schedule):
    """Where the report names it as periodic, in a search that excuses any."""
    short = trial(schedule=schedule)
    assert odd(short, campaign("redis.set[alive]")) == []
    assert len(odd(short)) == len(schedule)
    assert odd(short, campaign("redis.set[alive]", strategy="replay"))


def test_nothing_else_is_excused(trial):
    """What stands before it, its first occurrence, and one that did come by."""
    of = campaign("redis.set[alive]", "redis.set[x]")
    assert len(odd(trial(schedule=[FIRST, BEAT]), of)) == 1
    assert odd(trial(schedule=[BEAT], crosses=["alive"] * 2), of)


def test_without_a_report_no_trial_is_excused_by_itself(trial):
    """Of a campaign that was cut short nothing is a pass, and it says so."""
    short = trial(schedule=[BEAT])
    assert odd(short, cut_short()) == []
    assert odd(short, cut_short(only="0001"))
