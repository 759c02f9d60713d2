"""Judging what was struck but not killed: a signal, a pause, a jump of the clock.

Each excuse is shown on a history where it holds and on one where it does not.
"""

import pytest

from chaoskit.checks import log, progress
from chaoskit.checks.case import Case
from chaoskit.model.address import Edge
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import FaultFired, LifeContinued
from chaoskit.model.schedule import Fault

PAY = {"order": "o-1"}
BUY = ([("pay", PAY)],)


@pytest.fixture
def judged(make_scenario, make_manifest):
    """What `progress` says of a story."""

    def judge(story, *turns, cls="keyed", **contract):
        scenario = make_scenario(*(turns or BUY), tools={"pay": cls})
        manifest = make_manifest(**contract)
        found = progress.check(Case(story.trial(), scenario, manifest))
        return [finding.requirement for finding in found]

    return judge


def struck(story, kind, edge=Edge.AFTER):
    """A fault strikes at the message that crossed last, and the life goes on."""
    fault = Fault(kind, story.last.at_edge(edge))
    story.faults.append(fault)
    return story.add(FaultFired(life=story.life, fault=str(fault)))


def asked_to_end(story, ending, code):
    return struck(story, FaultKind.TERM).end(ending, "asked", code=code)


def test_a_run_never_fails_because_of_a_signal(told, judged):
    """Not for a blind call either: it was answered, and nothing else was in the way."""
    for cls in ("keyed", "blind"):
        story = told().start().ask(0).call("pay", **PAY)
        asked_to_end(story, "failed", 65).over("failed")
        assert judged(story, cls=cls) == ["progress/fails-for-a-reason"]


def test_a_run_may_fail_for_a_doubt_that_an_earlier_death_left(told, judged):
    story = told().start().ask(0).deliver("pay", **PAY).killed().resume().ask(0)
    asked_to_end(story, "failed", 65).over("failed")
    assert judged(story, cls="blind") == []


def test_it_may_park_inside_a_blind_call_and_in_no_other(told, judged):
    """The signal broke the wait for an answer that cannot be asked for again."""
    for cls, expected in (("blind", []), ("keyed", ["progress/parks-for-a-reason"])):
        story = told().start().ask(0).call("pay", **PAY)
        asked_to_end(story, "parked", 75).over("parked")
        assert judged(story, cls=cls) == expected


def test_faults_that_kill_nobody_are_no_deaths_at_a_call(told, judged):
    """`max_attempts` counts deaths; a pause at the same call is none of them."""
    for kind, expected in (
        (FaultKind.KILL, []),
        (FaultKind.PAUSE, ["progress/fails-for-a-reason"]),
    ):
        story = told()
        for _ in range(2):
            story.start().ask(0).deliver("pay", "k", **PAY)
            if kind is FaultKind.KILL:
                story.killed()
            else:
                struck(story, kind).reply().end("parked", code=75)
        story.resume().fails()
        assert judged(story, max_attempts=2) == expected


@pytest.mark.parametrize("kind", [FaultKind.SKEW, FaultKind.TERM])
def test_a_wait_is_not_judged_by_time_where_the_clock_jumped(told, judged, kind):
    """Half a second for one of three: a finding but for the jump."""
    story = struck(told().start().ask(0), kind).after(0.5).ask(1, "0.0").done()
    expected = [] if kind is FaultKind.SKEW else ["progress/waits-its-time"]
    assert judged(story, {"wait": 3.0}, [("pay", PAY)]) == expected


@pytest.mark.parametrize("took_over", [True, False])
def test_a_paused_life_speaks_of_the_checkpoint_that_it_knew(
    told, make_scenario, make_manifest, took_over
):
    """Life 1 wrote the third one; that life 0 still names the first is no fall."""
    story = told().start().log("run.start", 1).ask(0)
    struck(story, FaultKind.PAUSE).resume().log("run.resume", 1).log("step.end", 3)
    story.end("done", code=0)
    if took_over:
        story.life = 0
        story.add(LifeContinued(life=0))
    else:
        story.resume()
    story.log("step.end", 1).end("died", code=1).over("done")
    found = log.check(Case(story.trial(), make_scenario(), make_manifest()))
    fell = "log/checkpoint-ids-never-fall"
    assert (fell in [finding.requirement for finding in found]) is not took_over
