"""What a campaign tries, in which order, and what it makes of what it sees."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from chaoskit.campaign.missed import TRIES_MAX
from chaoskit.model.verdict import Verdict

PAID_TWICE = "effects/once-across-kill"
AT_PAY = "kill@0:tools.pay[o-1]#1:after"


async def sound(body, key="k-1"):
    """An agent done right: it remembers each step, and pays under one key."""
    await body.once(body.ask, 0)
    await body.once(body.pay, key)
    await body.once(body.ask, 1, "0.0")
    body.say("Paid.\n")
    return 0


async def careless(body):
    """Pays without a key, so that it pays again what it does not remember."""
    return await sound(body, key=None)


def trial_of(body):
    """The name of the trial that a life is in."""
    return body.command.stdout.parent.name


def test_a_sweep_strikes_every_edge_and_passes(campaign):
    """Two clean runs, then one trial for each of the six edges."""
    report, pool = campaign(sound)
    assert report.verdict is Verdict.PASS, (report.findings, report.doubts)
    assert (report.trials, report.kills, report.crossings.hit) == (8, 6, 6)
    assert [plan.name for plan in pool.plans[:3]] == [
        "baseline-1",
        "baseline-2",
        "0003",
    ]


@pytest.mark.parametrize("store", ["redis", "sqlite"])
def test_a_store_that_nothing_crossed_to_earns_no_green_light(campaign, store):
    """Its state is elsewhere, where no write of it is seen, and none was struck."""
    report, _ = campaign(sound, store=store)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert f"state is kept in {store}, and nothing crossed to" in report.doubts[0]
    assert report.kills == 6  # what there is is put to the test all the same


@pytest.mark.parametrize("strategy", ["sweep", "sample", "closure"])
def test_the_order_in_which_trials_end_changes_nothing(campaign, strategy):
    """However many workers there are: the same schedules, findings and names."""
    search = {"strategy": strategy, "depth": 2, "trials": 40}
    seen = []
    for backwards in (False, True):
        name = f"backwards-{backwards}"
        report, pool = campaign(careless, search=search, backwards=backwards, name=name)
        tried = [(plan.name, str(plan.path)) for plan in pool.plans]
        seen.append((tried, replace(report, seconds=0, out="")))
        assert (pool.ended == [name for name, _ in tried]) is not backwards
    assert seen[0] == seen[1]


def test_the_limit_of_trials_is_kept_and_told(campaign):
    """Clean runs do not count; what was not run is a reason to doubt."""
    report, _ = campaign(sound, search={"trials": 4})
    assert (report.trials, report.verdict) == (6, Verdict.INCONCLUSIVE)
    (doubt,) = report.doubts
    assert doubt.startswith("2 more schedules were due and not run")


def test_a_finding_is_shown_again_by_its_smallest_schedule(campaign):
    """In a trial of its own, which the report names."""
    report, _ = campaign(careless, search={"depth": 2})
    first = report.findings[0]
    assert (first.finding.requirement, str(first.schedule)) == (PAID_TWICE, AT_PAY)
    assert first.again
    assert first.trial.startswith("confirm-")
    assert first.trials > 1


def test_a_finding_that_does_not_come_again_is_a_finding_all_the_same(campaign):
    """What was seen with real kills was seen; the report says what became of it."""

    async def sometimes(body):
        return await (sound if "confirm" in trial_of(body) else careless)(body)

    report, _ = campaign(sometimes)
    assert report.verdict is Verdict.FAIL
    assert not report.findings[0].again


def test_what_rests_on_a_time_limit_must_come_again(campaign):
    """Or the machine was slow: a doubt, not a finding."""

    async def slow_once(body):
        if trial_of(body) == "0004":
            return await body.hang()
        return await sound(body)

    limits = {"life_seconds": 0.2, "trial_seconds": 0.2}
    report, _ = campaign(slow_once, limits=limits)
    assert report.verdict is Verdict.INCONCLUSIVE, report.findings
    said = "progress/ends was broken at a time limit"
    assert any(doubt.startswith(said) for doubt in report.doubts)


def test_what_both_clean_runs_show_needs_no_proof(campaign):
    """It was seen twice already, and no schedule has to be run again."""

    async def crashes(body):
        return 1

    report, pool = campaign(crashes)
    assert [shown.finding.requirement for shown in report.findings] == ["progress/ends"]
    assert len(pool.plans) == 2


def test_a_run_without_end_is_never_a_pass(campaign):
    """Also where nobody asked for `progress`, so that no promise is broken by it."""

    async def crashes(body):
        return 1

    report, _ = campaign(crashes, promises=["effects"])
    assert report.findings == ()
    assert report.verdict is Verdict.INCONCLUSIVE
    assert "the fault-free run did not end" in report.doubts[0]


def test_a_clean_run_that_does_nothing_is_no_yardstick(campaign):
    """The search ends before it has begun."""

    async def idles(body):
        return 0

    report, pool = campaign(idles)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert "applied no effect" in report.doubts[0]
    assert len(pool.plans) == 2


def test_a_kill_that_came_too_late_is_no_kill(campaign):
    """The life ended by itself first: the edge was not put to the test."""

    async def slips_away(body):
        try:
            return await sound(body)
        except asyncio.CancelledError:
            return 0

    report, _ = campaign(slips_away)
    assert report.kills == 0
    assert any("was to be killed and ended with code 0" in d for d in report.doubts)


def test_a_call_that_is_a_race_is_struck_in_one_of_several_tries(campaign):
    """What is on its way when a life dies is there in one run and not in the next."""

    async def races(body):
        """In every second trial a life that goes on has one more call to make."""
        odd = trial_of(body)[-1] in "13579"
        if "--resume" in body.command.argv and odd:
            await body.act("look")
        return await sound(body)

    report, pool = campaign(races, search={"depth": 2})
    assert report.verdict is Verdict.PASS, report.doubts
    schedules = Counter(str(plan.path) for plan in pool.plans if len(plan.path) > 1)
    assert max(schedules.values()) > 1
    assert not [note for note in report.notes if "was not reached" in note]


def test_a_call_that_never_comes_again_is_tried_no_further_than_that(campaign):
    first = []

    async def once(body):
        """It looks in the first run that goes on, and never again."""
        name = trial_of(body)
        if "--resume" in body.command.argv and not name.startswith("baseline"):
            first[:] = first or [name]
            if first == [name]:
                await body.act("look")
        return await sound(body)

    report, pool = campaign(once, search={"depth": 2})
    assert report.verdict is Verdict.INCONCLUSIVE
    (doubt, *_) = report.doubts
    assert "tools.look" in doubt
    missed = doubt.partition(" ")[0]
    tried = [plan for plan in pool.plans if missed in str(plan.path)]
    assert len(tried) == TRIES_MAX
