"""The fault-free run, made twice: what repeats, is periodic, or proves nothing."""

import pytest

from chaoskit.explore.baseline import Baseline, without_effects
from chaoskit.model.address import Operation

PAY = {"order": "o-1"}


@pytest.fixture
def clean(told):
    """A fault-free run, with heartbeats at its start and look-ups at its end."""

    def run(beats=0, polls=0, orders=("o-1",), outcome="done", turns=(0, 1)):
        story = told()
        for _ in range(beats):
            story.cross("redis", "expire", "lock")
        story.ask(turns[0])
        for order in orders:
            story.call("pay", "k", order=order)
        for _ in range(polls):
            story.cross("tools", "pay?", "o-1")
        story.ask(turns[1], "0.0")
        return (story.done() if outcome == "done" else story.over(outcome)).trial()

    return run


def test_runs_that_repeat(clean):
    baseline = Baseline(clean(beats=2), clean(beats=2))
    assert not baseline.doubts
    assert not baseline.periodic
    assert baseline.targets == baseline.first.addresses
    assert len(baseline.targets) == 2 * 5


@pytest.mark.parametrize("one", [{"beats": 3}, {"polls": 2}])
def test_heartbeats_and_polls_are_periodic(clean, one):
    """They count at their first occurrence, and make nothing unrepeatable."""
    operation = (
        Operation("redis", "expire", "lock")
        if "beats" in one
        else Operation("tools", "pay?", "o-1")
    )
    baseline = Baseline(clean(**one), clean(**dict.fromkeys(one, 1)))
    assert not baseline.doubts
    assert baseline.periodic == {operation}
    assert [a.nth for a in baseline.targets if a.operation == operation] == [1, 1]


def test_what_one_run_alone_did_is_no_target(clean):
    baseline = Baseline(clean(beats=1), clean(beats=0))
    assert not baseline.doubts
    assert baseline.targets == clean().addresses


def test_an_operation_of_the_other_run_is_no_target_either(clean):
    baseline = Baseline(clean(beats=0), clean(beats=1))
    assert baseline.targets == clean().addresses


@pytest.mark.parametrize(
    ("other", "doubt"),
    [
        ({"outcome": "parked"}, "one fault-free run was done, the other parked"),
        ({"orders": ("o-1", "o-2")}, "did not apply the same effects"),
        ({"orders": ("o-1", "o-1")}, "did not apply the same effects"),
        ({"turns": (0, 2)}, "did not ask the model the same questions"),
    ],
)
def test_runs_that_do_not_repeat(clean, other, doubt):
    doubts = Baseline(clean(), clean(**other)).doubts
    assert any(doubt in each for each in doubts)


def test_calls_and_questions_are_never_periodic(clean):
    doubts = Baseline(clean(), clean(orders=("o-1", "o-1"))).doubts
    assert "tools.pay[o-1] crossed 2 times in one run and 4 in the other" in doubts


def test_calls_in_another_order_repeat(clean):
    baseline = Baseline(clean(orders=("o-1", "o-2")), clean(orders=("o-2", "o-1")))
    assert not baseline.doubts
    assert len(baseline.targets) == 2 * 4


def test_the_life_after_done_is_no_target(told):
    story = told().ask(0).end("done").start("again").cross("redis", "get", "x")
    trial = story.end("done").over("done").trial()
    assert {address.life for address in Baseline(trial, trial).targets} == {0}


def test_a_run_without_effects(told, clean):
    assert without_effects(told().ask(0).look("find", to="A").done().trial())
    assert not without_effects(clean())
