"""A heartbeat that is struck like any message, for both clean runs had as many."""

import pytest

from chaoskit.explore.beats import Beats
from chaoskit.model.address import Operation
from chaoskit.model.schedule import Fault

BEAT = Operation("redis", "set", "alive")
NEXT_BEAT = Fault.parse("kill@1:redis.set[alive]#2:after")
BEHIND = Fault.parse("kill@1:redis.set[work-1]#1:before")


@pytest.fixture
def struck(told):
    """A run that is killed at its second beat, after so much of its work."""

    def make(work, missing=None):
        story = told().start().cross("redis", "set", "alive")
        for number in range(work):
            story.cross("redis", "set", f"work-{number}")
        story.cross("redis", "set", "alive", after=False).killed()
        story.resume().done().over("done")
        if missing is not None:
            story.faults.append(missing)
            story.unfired = (missing,)
        return story.trial()

    return make


@pytest.fixture
def beats():
    return Beats(idle=frozenset({BEAT}))


def test_what_comes_after_a_beat_at_another_moment_need_not_come(beats, struck):
    assert beats.excused(struck(work=1)) == frozenset()
    assert beats.late == set()
    assert beats.excused(struck(work=2, missing=BEHIND)) == {BEHIND}
    assert beats.late == {BEAT}


def test_what_comes_after_a_beat_at_the_same_moment_has_to_come(beats, struck):
    """An agent that does another thing each time gets no excuse."""
    beats.excused(struck(work=1))
    assert beats.excused(struck(work=1, missing=BEHIND)) == frozenset()
    assert beats.late == set()


def test_what_is_no_beat_gives_no_excuse(struck):
    beats = Beats()
    beats.excused(struck(work=1))
    assert beats.excused(struck(work=2, missing=BEHIND)) == frozenset()


def test_a_beat_that_did_not_come_is_excused(beats, struck):
    assert beats.excused(struck(work=1, missing=NEXT_BEAT)) == {NEXT_BEAT}
    assert beats.late == {BEAT}


def test_what_was_to_come_after_a_beat_that_never_came_need_not_come(beats, told):
    """A walk goes on from such a run; where the beat comes after all, all is new."""
    beat = Fault.parse("kill@0:redis.set[alive]#2:after")
    behind = Fault.parse("kill@0:redis.set[work]#1:before")
    story = told().cross("redis", "set", "alive").cross("redis", "set", "work").done()
    story.faults, story.unfired = [beat], (beat,)
    assert beats.excused(story.trial()) == {beat}
    again = told().cross("redis", "set", "alive").cross("redis", "set", "alive")
    again.killed().resume().done()
    again.faults, again.unfired = [beat, behind], (behind,)
    assert beats.excused(again.trial()) == {behind}
