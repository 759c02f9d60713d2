"""How findings and doubts add up, and which finding is said to follow from which."""

import pytest

from chaoskit import checks
from chaoskit.checks import Judgement, judge
from chaoskit.model.faults import FaultKind
from chaoskit.model.scenario import PromiseId
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.verdict import Finding, Severity, Verdict

PAY = {"order": "o-1"}
FAULT = Fault.parse("kill@0:llm.chat#9:after")
MUST = Finding("effects", "effects/none-lost", "Lost.", 1, 0)
SHOULD = Finding("log", "log/x", "Unusual.", 1, 0, severity=Severity.SHOULD)


@pytest.fixture(scope="module")
def judged(make_scenario, make_manifest):
    def judge_story(story, *turns, **more):
        scenario = make_scenario(
            *(turns or ([("pay", PAY)],)), tools={"pay": "keyed"}, **more
        )
        return judge(story.trial(), scenario, make_manifest())

    return judge_story


@pytest.fixture
def right(told):
    story = told().ask(0).call("pay", "k", **PAY).ask(1, "0.0")
    return story.log("run.start").log("run.end").done()


def requirements(judgement):
    return [finding.requirement for finding in judgement.findings]


# --- verdicts ------------------------------------------------------------------------


def test_fail_outweighs_inconclusive_which_outweighs_pass():
    worst = Verdict.worst([Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.FAIL])
    assert worst is Verdict.FAIL
    assert Verdict.worst([Verdict.PASS, Verdict.INCONCLUSIVE]) is Verdict.INCONCLUSIVE
    assert Verdict.worst([]) is Verdict.PASS
    assert list(map(str, Verdict)) == ["pass", "inconclusive", "fail"]


@pytest.mark.parametrize(
    ("findings", "doubts", "verdict"),
    [
        ((), (), Verdict.PASS),
        ((), ("why",), Verdict.INCONCLUSIVE),
        ((MUST,), ("why",), Verdict.FAIL),
        ((SHOULD,), (), Verdict.PASS),
        ((SHOULD,), ("why",), Verdict.INCONCLUSIVE),
        ((SHOULD, MUST), (), Verdict.FAIL),
    ],
)
def test_a_judgement_adds_up(findings, doubts, verdict):
    assert Judgement(findings, doubts).verdict is verdict


def test_all_is_right(judged, right):
    judgement = judged(right)
    assert judgement == Judgement(notes=judgement.notes)
    assert judgement.verdict is Verdict.PASS


def test_a_fault_that_never_fired_proves_nothing(judged, right):
    right.unfired = (FAULT,)
    judgement = judged(right)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.doubts == (f"{FAULT} was scheduled and never fired",)


def test_a_finding_outweighs_a_fault_that_never_fired(judged, told):
    story = told().ask(0).done()
    story.unfired = (FAULT,)
    assert judged(story).verdict is Verdict.FAIL


def test_a_check_that_crashes_has_judged_nothing(judged, right, monkeypatch):
    def broken(case):
        yield MUST
        raise KeyError("gone")

    monkeypatch.setitem(checks.CHECKS, PromiseId.PROGRESS, broken)
    judgement = judged(right)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.doubts == ("the check progress crashed: KeyError('gone')",)
    assert not judgement.findings


def test_what_limits_a_trial_may_crash_too(judged, right, monkeypatch):
    def broken(trial):
        raise KeyError("gone")

    monkeypatch.setattr(checks.takeover, "blocked", broken)
    judgement = judged(right)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "KeyError('gone')" in judgement.doubts[0]


def test_a_history_may_stop_short_in_a_takeover(judged, told):
    """The life that took over has no end in it."""
    story = told().ask(0).cross("redis", "set", "x").struck(FaultKind.PAUSE)
    story.resume().ask(0).continued(0)
    assert not judged(story).doubts


def test_nor_has_every_life_in_it_begun(told, make_scenario, make_manifest):
    story = told()
    story.events.clear()
    story.cross("redis", "set", "x").killed().end("died", "limit").over("endless")
    every = Schedule((Fault(FaultKind.KILL, story.faults[0].at.in_every_life()),))
    scenario = make_scenario([("pay", PAY)], tools={"pay": "keyed"})
    judgement = judge(story.trial(every), scenario, make_manifest())
    assert (judgement.verdict, judgement.doubts) == (Verdict.FAIL, ())


def test_only_the_promises_of_the_scenario_are_checked(judged, told):
    story = told().ask(0, problem="refused").done()
    assert requirements(judged(story, promises=["transcript"])) == [
        "transcript/valid-request"
    ]


def test_an_agent_without_logs_is_noted(judged, told):
    story = told().ask(0).call("pay", "k", **PAY).ask(1, "0.0").done()
    judgement = judged(story)
    assert judgement.verdict is Verdict.PASS
    no_store, no_log = judgement.notes
    assert no_store.startswith("store was not judged: the manifest names no `inspect`")
    assert no_log.startswith("log was not judged: the agent writes no")
    assert not judged(story, promises=["effects"]).notes


# --- one cause -----------------------------------------------------------------------


def follows(judgement):
    return {f.requirement: f.follows for f in judgement.findings}


def test_an_effect_lost_and_nothing_else(judged, told):
    story = told().ask(0).killed_at().resume().ask(1, "0.0").done()
    assert follows(judged(story)) == {"effects/none-lost": ""}


def test_an_effect_applied_again_before_it_was_carried_is_one_finding(judged, told):
    story = told().ask(0).call("pay", **PAY).killed().resume().call("pay", **PAY)
    judgement = judged(story.ask(1, "0.0").done())
    assert follows(judgement) == {"effects/once-across-kill": ""}


def test_an_effect_applied_by_going_back_follows_from_that(judged, told):
    story = told().ask(0).call("pay", **PAY).ask(1, "0.0").killed()
    story.resume().ask(0).call("pay", **PAY).ask(1, "0.0").done()
    assert follows(judged(story)) == {
        "effects/once-across-kill": "progress/not-again",
        "progress/not-again": "cost/not-asked-again",
        "cost/not-asked-again": "",
    }


def test_a_call_made_again_after_its_turn_was_asked_again_follows_from_that(
    judged, told
):
    """Whoever forgot a reply asks for it again, whether or not its call was made."""
    story = told().ask(0).call("pay", **PAY).killed()
    story.resume().ask(0).call("pay", **PAY).ask(1, "0.0").done()
    assert follows(judged(story)) == {
        "effects/once-across-kill": "cost/not-asked-again",
        "cost/not-asked-again": "",
    }


def test_what_comes_of_a_key_that_stands_for_two_calls_follows_from_it(judged, told):
    """The second call had a key of its own before, and is told the first's result."""
    other = {"order": "o-2"}
    story = told().ask(0).call("pay", "k-1", **PAY).call("pay", "k-2", **other)
    story.killed().resume().call("pay", "k-1", first=False, **other)
    turn = [("pay", PAY), ("pay", other)]
    assert follows(judged(story.ask(1, "0.0", "0.1").done(), turn)) == {
        "effects/distinct-key": "",
        "effects/stable-key": "effects/distinct-key",
    }


def test_going_back_to_another_call_explains_nothing(judged, told):
    story = told().ask(0).call("pay", "k", **PAY).call("pay", order="o-2").killed()
    story.resume().call("pay", order="o-2").ask(1, "0.0", "0.1")
    story.call("pay", "k", first=False, **PAY).ask(1, "0.0", "0.1").done()
    turn = [("pay", PAY), ("pay", {"order": "o-2"})]
    assert follows(judged(story, turn)) == {
        "effects/once-across-kill": "",
        "progress/not-again": "",
    }


def test_an_effect_applied_after_done_follows_from_that(judged, told):
    story = told().ask(0).call("pay", **PAY).ask(1, "0.0").end("done")
    story.start("again").call("pay", **PAY).end("done").over("done")
    assert follows(judged(story)) == {
        "effects/once-across-kill": "progress/resume-after-done",
        "progress/resume-after-done": "",
    }


def test_an_effect_lost_before_does_not_follow_from_what_came_after_done(judged, told):
    story = told().ask(0).ask(1, "0.0").end("done").start("again").ask(1, "0.0")
    assert follows(judged(story.end("done").over("done"))) == {
        "effects/none-lost": "",
        "progress/resume-after-done": "",
    }


def test_an_effect_lost_to_changed_arguments_follows_from_that(judged, told):
    story = told().ask(0).call("pay", order="o-1", at=9).ask(1, "0.0").done()
    assert follows(judged(story)) == {
        "effects/only-what-was-asked": "",
        "effects/none-lost": "effects/only-what-was-asked",
    }


@pytest.mark.parametrize("outcome", ["failed", "parked", "endless"])
def test_a_bad_end_after_a_refusal_follows_from_it(judged, told, outcome):
    found = follows(judged(told().ask(0, problem="refused").over(outcome)))
    assert found.pop("transcript/valid-request") == ""
    assert list(found.values()) == ["transcript/valid-request"]


# --- what makes two findings one -----------------------------------------------------


def test_findings_of_one_requirement_and_subject_are_one_cause(judged, told):
    def lost(*calls):
        return judged(told().ask(0).done(), list(calls), promises=["effects"]).findings

    (one,), (again,) = lost(("pay", PAY)), lost(("pay", PAY))
    (other,) = lost(("pay", {"order": "o-2"}))
    assert one.cause == again.cause != other.cause


def test_an_inspect_that_never_works_is_a_doubt(told, judged, right):
    """What the agent declared would else count as right where it was never seen."""
    shown = right.inspected("end", problem="it said nothing")
    (doubt,) = judged(shown).doubts
    assert doubt.startswith("`inspect` showed nothing of the fault-free run: it said")


def test_an_inspect_that_fails_after_a_fault_is_no_doubt(told, judged):
    """That is judged by `store/readable`, where something was to be read."""
    story = told().ask(0).killed().inspected(problem="locked").resume().ask(0)
    assert judged(story.inspected("end").done()).doubts == ()
