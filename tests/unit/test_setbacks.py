"""`contract.resumes`: what a crash may take back is judged as the agent declares it.

A step that is done again after such a loss is no finding; what comes of it is one.
"""

import pytest

from chaoskit.checks import judge
from chaoskit.checks.case import Case
from chaoskit.checks.cost import check as cost
from chaoskit.checks.progress import check as progress
from chaoskit.model.faults import FaultKind

BOOK = {"room": "7"}
PAY = {"order": "o-1"}
TOOLS = {"book": "keyed", "pay": "keyed"}
NOT_AGAIN = ["cost/not-asked-again", "progress/not-again"]
LATE = ["earlier-checkpoint", "start"]


@pytest.fixture
def found(make_scenario, make_manifest):
    """What `progress` and `cost` say of a story, where the agent declares that."""

    def judged(story, resumes, *turns):
        script = turns or ([("book", BOOK)], [("pay", PAY)])
        scenario = make_scenario(*script, tools=TOOLS)
        declared = {"resumes": resumes} if resumes else {}
        case = Case(story.trial(), scenario, make_manifest(**declared))
        found = {each.requirement for check in (cost, progress) for each in check(case)}
        return sorted(found)

    return judged


def booked(story, turn=0, key="k-1", *, first=True):
    """A room is booked, and the model is told so."""
    story.ask(turn).call("book", key, first=first, **BOOK)
    return story.ask(turn + 1, f"{turn}.0")


def ends(story, turn=1):
    """The order is paid, and the run ends."""
    return story.call("pay", "k-2", **PAY).ask(turn + 1, "0.0", f"{turn}.0").done()


@pytest.mark.parametrize("resumes", [None, "last-checkpoint"])
def test_without_a_word_nothing_is_done_again(told, found, resumes):
    story = booked(booked(told()).killed().resume(), first=False)
    assert found(ends(story), resumes) == NOT_AGAIN


@pytest.mark.parametrize("resumes", LATE)
def test_what_a_crash_may_take_back_is_done_again(told, found, resumes):
    story = booked(booked(told()).killed().resume(), first=False)
    assert found(ends(story), resumes) == []


@pytest.mark.parametrize("resumes", LATE)
def test_a_crash_of_its_own_is_one(told, found, resumes):
    story = booked(booked(told()).crashed().resume(), first=False)
    assert found(ends(story), resumes) == []


@pytest.mark.parametrize("resumes", LATE)
def test_nothing_is_taken_back_without_a_crash(told, found, resumes):
    """Not in one life, and not by a takeover of one that lives."""
    assert found(ends(booked(booked(told()), first=False)), resumes) == NOT_AGAIN
    paused = booked(told()).struck(FaultKind.PAUSE).resume()
    assert found(ends(booked(paused, first=False)), resumes) == NOT_AGAIN


@pytest.mark.parametrize("resumes", LATE)
def test_what_was_done_again_is_known_until_the_next_crash(told, found, resumes):
    story = booked(booked(told()).killed().resume(), first=False)
    assert found(ends(booked(story, first=False)), resumes) == NOT_AGAIN


GATED = ([("book", BOOK)], {"ask": "Pay?"}, [("pay", PAY)])


@pytest.mark.parametrize(
    ("resumes", "expected"), [("earlier-checkpoint", NOT_AGAIN), ("start", [])]
)
def test_a_run_that_has_parked_was_saved(told, found, resumes, expected):
    """Only who begins from the start may have to do it again."""
    story = booked(told()).end("parked").start("answer", "answer 1")
    story = booked(story.killed_at().resume(), first=False)
    assert found(ends(story, turn=2), resumes, *GATED) == expected


def test_what_came_after_it_may_be_lost(told, found):
    story = booked(told()).end("parked").start("answer", "answer 1")
    story.ask(2, "0.0", "1.0").call("pay", "k-2", **PAY).ask(3, "2.0").killed().resume()
    story.ask(2, "0.0", "1.0").call("pay", "k-2", first=False, **PAY)
    assert found(story.ask(3, "2.0").done(), "earlier-checkpoint", *GATED) == []
    assert found(story, "last-checkpoint", *GATED) == NOT_AGAIN


def test_what_the_store_forgot_is_not_what_a_run_had_saved(told, found):
    """A loss of the store takes back what was kept; the crash after it does too."""
    story = booked(told()).end("parked").start("answer", "answer 1")
    story.cross("redis", "set", "x").struck(FaultKind.ROLLBACK).killed().resume()
    story = booked(booked(story, first=False).killed().resume(), first=False)
    assert found(ends(story, turn=2), "earlier-checkpoint", *GATED) == []


@pytest.mark.parametrize("resumes", LATE)
def test_a_new_key_for_the_same_call_is_judged_as_ever(
    told, make_scenario, make_manifest, resumes
):
    """Effects are judged by their tool's class: twice is twice, whatever was lost."""
    story = booked(booked(told()).killed().resume(), key="k-9")
    scenario = make_scenario([("book", BOOK)], [("pay", PAY)], tools=TOOLS)
    expected = {
        "exactly-once": ["effects/once-across-kill"],
        "at-least-once": ["effects/stable-key"],
        "at-most-once": ["effects/once-across-kill"],
    }
    trial = ends(story).trial()
    for guarantee, requirements in expected.items():
        manifest = make_manifest(guarantee, resumes=resumes)
        findings = judge(trial, scenario, manifest).findings
        assert [each.requirement for each in findings] == requirements
