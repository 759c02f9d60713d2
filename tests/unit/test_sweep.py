"""Sweep: every crossing of the fault-free run, then everything after the last kill."""

import pytest

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.replay import Replay
from chaoskit.explore.strikes import Strikes
from chaoskit.explore.sweep import Sweep, following
from chaoskit.model.faults import FaultKind, Wanted
from chaoskit.model.schedule import Schedule

KILL = Strikes((Wanted(FaultKind.KILL),))


BEAT = ("redis", "expire", "beat")
MESSAGES = (BEAT, ("llm", "chat", None), ("tools", "pay", "o-1"))


@pytest.fixture
def run(play):
    return lambda schedule: play(schedule, *MESSAGES)


def explore(explorer, run, baseline):
    """As a campaign does: in the order of submission."""
    queue, done = list(explorer.first(baseline)), []
    for visit in queue:
        done.append(visit.schedule)
        queue += explorer.after(run(visit.schedule))
    return done


def clean(run):
    return Baseline(*(run(Schedule()).trial for _ in range(2)))


def test_depth_1_strikes_each_crossing_at_both_edges(run):
    schedules = explore(Sweep(KILL, 1), run, clean(run))
    assert list(map(str, schedules)) == [
        f"kill@0:{operation}#1:{edge}"
        for operation in ("redis.expire[beat]", "llm.chat", "tools.pay[o-1]")
        for edge in ("before", "after")
    ]


def test_depth_2_is_every_pair(run):
    schedules = explore(Sweep(KILL, 2), run, clean(run))
    singles = [s for s in schedules if len(s) == 1]
    pairs = [s for s in schedules if len(s) == 2]
    assert (len(singles), len(pairs)) == (6, 36)
    assert len(set(schedules)) == len(schedules)
    assert all(s.faults[1].at.life == s.faults[0].at.life + 1 for s in pairs)
    assert schedules == singles + pairs


def test_depth_2_reaches_lives_beyond_the_next(play):
    """A run that parks at a gate goes on in another life, and may be killed there."""

    def run(schedule):
        return play(schedule, *MESSAGES, parks=True)

    baseline = clean(run)
    assert {address.life for address in baseline.targets} == {0, 1}
    first = Schedule.parse("kill@0:llm.chat#1:after")
    targets = following(run(first).trial, baseline)
    assert [address.life for address in targets] == [1] * 6 + [2] * 6


def test_a_fault_that_did_not_fire_leads_nowhere(run):
    sweep = Sweep(KILL, 2)
    assert list(sweep.first(clean(run)))
    missed = run(Schedule.parse("kill@0:llm.chat#9:before"))
    assert missed.trial.unfired
    assert not list(sweep.after(missed))


def test_periodic_operations_are_struck_at_their_first_occurrence(play):
    def beating(schedule):
        return play(schedule, BEAT, BEAT, *MESSAGES)

    baseline = Baseline(
        beating(Schedule()).trial, play(Schedule(), BEAT, *MESSAGES).trial
    )
    schedules = explore(Sweep(KILL, 2), beating, baseline)
    beats = [f.at for s in schedules for f in s.faults if f.at.operation.op == "expire"]
    assert {at.nth for at in beats} == {1}
    assert {at.life for at in beats} == {0, 1}
    assert len(schedules) == 6 + 36


def test_the_life_after_done_and_late_messages_are_not_struck(told):
    story = told().ask(0).call("pay", late=True, order="o-1").killed().resume().ask(0)
    story.end("done").start("again").cross("redis", "set", "x").end("done").over("done")
    trial = story.trial()
    assert [str(a) for a in following(trial, Baseline(trial, trial))] == [
        "1:llm.chat#1:before",
        "1:llm.chat#1:after",
    ]


def test_replay_runs_the_list_as_often_as_asked(run):
    one, other = (Schedule.parse(f"kill@0:llm.chat#1:{e}") for e in ("before", "after"))
    replay = Replay((one, other), times=2)
    assert explore(replay, run, clean(run)) == [one, other, one, other]
