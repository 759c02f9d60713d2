"""`progress` on hand-written histories: each finding, and silence where all is well."""

import pytest

from chaoskit.checks import judge
from chaoskit.checks.case import Case
from chaoskit.checks.losses import Losses
from chaoskit.checks.progress import check
from chaoskit.checks.waits import waits
from chaoskit.model.address import Edge
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import ClockLeapt
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.verdict import Verdict

PAY = {"order": "o-1"}
BUY = ([("pay", PAY)],)


@pytest.fixture(scope="module")
def judged(make_scenario, make_manifest):
    """What `progress` says of a story."""

    def judge(
        story, *turns, cls="keyed", guarantee="exactly-once", schedule=None, **contract
    ):
        scenario = make_scenario(*(turns or BUY), tools={"pay": cls, "find": "read"})
        manifest = make_manifest(guarantee, **contract)
        return list(check(Case(story.trial(schedule), scenario, manifest)))

    return judge


def requirements(findings):
    return [finding.requirement for finding in findings]


def paid(story):
    return story.ask(0).call("pay", "k", **PAY).ask(1, "0.0")


def test_a_run_that_is_done(told, judged):
    assert not judged(paid(told()).done())


def test_a_run_that_was_killed_and_went_on(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).killed().resume()
    assert not judged(story.call("pay", "k", first=False, **PAY).ask(1, "0.0").done())


# --- how it ends ---------------------------------------------------------------------


def test_an_endless_run_tells_its_last_words(told, judged):
    story = told().ask(0).killed().resume()
    story.crashed(tail=("Traceback", "KeyError: 'x'"), output="0001/life-1.err")
    last = story.seq - 1
    (found,) = judged(story.over("endless", "6 lives ended"))
    assert found.requirement == "progress/ends"
    assert "6 lives ended" in found.message
    assert "Life 1 exited with 1; its log is 0001/life-1.err" in found.message
    assert "\n    Traceback\n    KeyError: 'x'" in found.message
    assert found.events == (last, story.seq)
    assert (found.expected, found.observed) == ("done", "endless")


def test_a_life_that_hung_is_said_to_have_hung(told, judged):
    story = told().ask(0).end("died", "limit", signal=9).over("endless")
    (found,) = judged(story)
    assert "was ended at its time limit" in found.message
    assert "said: nothing" in found.message


def test_a_history_that_stops_short_never_ended(told, judged):
    assert requirements(judged(told().ask(0))) == ["progress/ends"]


def test_a_cut_trial_is_not_judged_for_its_end(told, judged):
    assert not judged(told().ask(0).end("died", "cut").over("cut"))


@pytest.mark.parametrize("end", ["parks", "fails"])
@pytest.mark.parametrize("cls", ["read", "keyed", "queryable", "blind"])
@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once", "at-most-once"])
def test_what_may_be_left_undecided(told, judged, guarantee, cls, end):
    """A blind call, or any effect where it may not be tried again; never a read."""
    story = told().ask(0).call("pay", None, **PAY).killed().resume()
    found = judged(getattr(story, end)(), cls=cls, guarantee=guarantee)
    allowed = cls == "blind" or (guarantee == "at-most-once" and cls != "read")
    name = f"progress/{end}-for-a-reason"
    assert requirements(found) == ([] if allowed else [name])


@pytest.mark.parametrize("end", ["parks", "fails"])
def test_nothing_is_in_doubt_without_a_death(told, judged, end):
    story = getattr(told().ask(0), end)()
    found = judged(story, cls="blind")
    assert requirements(found) == [f"progress/{end}-for-a-reason"]


def test_a_crash_of_its_own_leaves_doubt(told, judged):
    story = told().ask(0).call("pay", **PAY).crashed().resume().parks()
    assert not judged(story, cls="blind")


def test_a_life_that_hung_leaves_doubt(told, judged):
    story = told().ask(0).call("pay", **PAY).end("died", "limit", signal=9)
    assert not judged(story.resume().parks(), cls="blind")


def test_a_death_in_a_restored_world_leaves_doubt(told, judged):
    story = told().ask(0).call("pay", **PAY).killed(cause="restored").resume().parks()
    assert not judged(story, cls="blind")


def test_an_intent_that_was_saved_leaves_doubt_though_nothing_was_sent(told, judged):
    story = told().ask(0).cross("redis", "set", "x").killed().resume().parks()
    assert not judged(story, cls="blind")


@pytest.mark.parametrize("reply", [True, False])
def test_a_reply_that_never_came_leaves_no_doubt(told, judged, reply):
    """The agent died before it knew of the call, so it cannot have sent it."""
    story = told().ask(0, reply=reply).killed().resume().ask(0).parks()
    found = judged(story, cls="blind")
    assert requirements(found) == ["progress/parks-for-a-reason"]


TORN = FaultKind.TEAR, Edge.of_part(9)


@pytest.mark.parametrize("kill", ["killed", "crashed"])
def test_a_call_that_was_made_was_known_though_its_reply_was_torn(told, judged, kill):
    """All of the call was there, before or after the rest of the reply was lost."""
    first = told().ask(0).struck(*TORN).call("pay", **PAY)
    second = told().ask(0).call("pay", **PAY)
    second.last, pay = second.events[2].at, second.last
    second.struck(*TORN).last = pay
    for story in (first, second):
        assert not judged(getattr(story, kill)().resume().parks(), cls="blind")


def test_one_of_an_earlier_turn_tells_nothing_of_a_torn_reply(told, judged):
    turns = [("find", {"to": "A"})], [("pay", PAY)]
    story = told().ask(0).look("find", to="A").ask(1, "0.0").struck(*TORN)
    found = judged(story.look("find", to="A").killed().resume().parks(), *turns)
    assert requirements(found)[0] == "progress/parks-for-a-reason"


def test_a_reply_without_its_last_word_was_heard(told, judged):
    """What was asked for was there, and why the reply ended."""
    for whole, found in ((9, []), (10, ["progress/parks-for-a-reason"])):
        story = told().ask(0, whole=whole).struck(*TORN).killed_at().resume().parks()
        assert requirements(judged(story, cls="blind")) == found


def test_a_death_long_before_leaves_no_doubt(told, judged):
    """It was killed in turn 0 and recovered; nothing happened to the call of turn 1."""
    turns = [("find", {"to": "A"})], [("pay", PAY)]
    story = told().ask(0).look("find", to="A").killed().resume().look("find", to="A")
    found = judged(story.ask(1, "0.0").parks(), *turns, cls="blind")
    assert requirements(found) == ["progress/parks-for-a-reason"]


def test_a_result_that_reached_the_model_leaves_no_doubt(told, judged):
    story = paid(told()).cross("redis", "set", "x").killed().resume().parks()
    found = judged(story, cls="blind")
    assert requirements(found) == ["progress/parks-for-a-reason"]


def test_a_call_that_was_never_asked_for_is_not_in_doubt(told, judged):
    """The request that was to bring it was refused."""
    story = told().ask(0, problem="refused").killed_at().resume().parks()
    found = judged(story, cls="blind")
    assert requirements(found) == ["progress/parks-for-a-reason"]


def test_a_second_call_of_the_turn_may_be_in_doubt_as_well(told, judged):
    turn = [("pay", PAY), ("pay", {"order": "o-2"})]
    story = told().ask(0).call("pay", **PAY).killed().resume().parks()
    assert not judged(story, turn, cls="blind")


@pytest.mark.parametrize("gate", [{"ask": "Approve?"}, {"wait": 3.0}])
def test_it_may_park_at_an_open_gate_or_wait(told, judged, gate):
    assert not judged(told().ask(0).parks(), gate)


@pytest.mark.parametrize("gate", [{"ask": "Approve?"}, {"wait": 3.0}])
def test_it_may_not_park_at_a_gate_that_is_closed(told, judged, gate):
    story = told().ask(0).after(3).ask(1, "0.0").parks()
    assert requirements(judged(story, gate)) == ["progress/parks-for-a-reason"]


def test_parked_for_no_reason_names_the_life(told, judged):
    story = told().ask(0).parks()
    (found,) = judged(story)
    assert found.requirement == "progress/parks-for-a-reason"
    assert "Life 0 exited with 75" in found.message
    assert found.observed == "parked"


def test_failed_for_no_reason(told, judged):
    story = told().ask(0).killed().resume().end("failed", code=65, tail=("gave up",))
    (found,) = judged(story.over("failed"))
    assert found.requirement == "progress/fails-for-a-reason"
    assert "gave up" in found.message


def deaths(story, number, **at):
    """So many deaths at one message, after which the agent gives up."""
    story.ask(0)
    for _ in range(number):
        story.deliver("pay", "k", **PAY).killed().resume()
    return story.fails()


def test_it_may_give_up_after_max_attempts(told, judged):
    assert not judged(deaths(told(), 3), max_attempts=3)
    found = judged(deaths(told(), 2), max_attempts=3)
    assert requirements(found) == ["progress/fails-for-a-reason"]
    found = judged(deaths(told(), 3))
    assert requirements(found) == ["progress/fails-for-a-reason"]


def test_deaths_at_different_messages_of_one_call_count_together(told, judged):
    """From its intent to its saved result, the agent sees one call and two deaths."""
    story = told().ask(0).call("pay", "k", **PAY).killed()
    story.resume().call("pay", "k", first=False, **PAY).cross("redis", "set", "x")
    assert not judged(story.killed().resume().fails(), max_attempts=2)


def test_deaths_at_different_calls_do_not_count_together(told, judged):
    turns = [("pay", PAY)], [("pay", {"order": "o-2"})]
    story = told().ask(0).call("pay", "k", **PAY).killed().resume()
    story.call("pay", "k", first=False, **PAY).ask(1, "0.0")
    story.call("pay", "l", order="o-2").killed().resume().fails()
    found = judged(story, *turns, max_attempts=2)
    assert requirements(found) == ["progress/fails-for-a-reason"]


def test_deaths_in_a_row_count_together_wherever_each_of_them_was(told, judged):
    """The agent sees one place at which it loses life after life."""
    story = told().ask(0).killed().resume().cross("redis", "eval", "lease").killed()
    story.resume().ask(0).killed().resume().cross("redis", "eval", "lease").killed()
    story.resume().fails()
    assert not judged(story, max_attempts=4)
    found = judged(story, max_attempts=5)
    assert requirements(found) == ["progress/fails-for-a-reason"]


def test_a_question_that_nobody_answered_came_no_further(told, judged):
    """Killed before it was passed on: what is stored is as it was."""
    story = told().cross("redis", "eval", "lease").killed().resume()
    story.cross("redis", "eval", "lease").killed().resume().ask(0).killed()
    assert not judged(story.resume().fails(), max_attempts=3)


def test_a_death_that_came_further_begins_another_row(told, judged):
    story = told().ask(0).killed().resume().ask(0).call("pay", "k", **PAY).killed()
    story.resume().cross("redis", "eval", "lease").killed().resume().fails()
    found = judged(story, max_attempts=3)
    assert requirements(found) == ["progress/fails-for-a-reason"]


def test_it_may_give_up_at_the_model(told, judged):
    story = told().ask(0).killed().resume().ask(0).killed().resume().fails()
    assert not judged(story, max_attempts=2)


def everywhere(fault):
    return Schedule((Fault(fault.kind, fault.at.in_every_life()),))


def test_a_run_that_was_never_let_to_end(told, judged, make_scenario, make_manifest):
    """No agent can pass a fault that strikes in every life; that proves nothing."""
    story = told().ask(0).killed().resume().ask(0).killed()
    schedule = everywhere(story.faults[0])
    story.over("endless", "it had not ended after 120 s")
    assert not judged(story, schedule=schedule)
    scenario = make_scenario(*BUY, tools={"pay": "keyed"})
    judgement = judge(story.trial(schedule), scenario, make_manifest())
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "never let to end" in judgement.doubts[0]


def test_a_run_that_was_killed_at_the_last_moment_never_ended(told, judged):
    """Its faults strike once; it had its lives and its seconds all the same."""
    story = told().ask(0).killed().over("endless", "it had not ended after 120 s")
    assert requirements(judged(story)) == ["progress/ends"]


def test_a_run_that_hangs_where_a_fault_strikes_in_every_life(told, judged):
    story = told().ask(0).after(1).killed().resume().after(5).end("died", "limit")
    schedule = everywhere(story.over("endless").faults[0])
    assert requirements(judged(story, schedule=schedule)) == ["progress/ends"]


@pytest.mark.parametrize("kind", [FaultKind.KILL, FaultKind.KILL_ONE])
def test_a_last_life_that_had_no_time_to_be_struck_hangs_not(told, judged, kind):
    """The trial's time was up in the midst of it."""
    story = told().ask(0).after(1).killed(kind).resume().after(1).ask(0).killed(kind)
    story.resume().after(0.5).end("died", "limit")
    schedule = everywhere(story.faults[0])
    story.over("endless", "it had not ended after 120 s")
    assert not judged(story, schedule=schedule)


def test_a_run_that_is_asked_to_end_in_every_life_was_never_let_to_end(told, judged):
    """It dies of SIGTERM, as it may."""
    story = told().ask(0).struck(FaultKind.TERM).end("died", "asked", signal=15)
    schedule = everywhere(story.faults[0])
    story.over("endless", "it had not ended after 120 s")
    assert not judged(story, schedule=schedule)


# --- going back ----------------------------------------------------------------------


def test_delivered_again_after_its_result_was_carried(told, judged):
    story = paid(told()).killed().resume().call("pay", "k", first=False, **PAY)
    again = story.seq - 3
    (found,) = judged(story.ask(1, "0.0").done())
    assert found.requirement == "progress/not-again"
    assert found.events == (again,)
    assert found.subject == "pay(order='o-1')"
    assert "life 1" in found.message


def test_held_again_after_its_result_was_carried(told, judged):
    story = paid(told()).killed().resume().deliver("pay", "k", **PAY).killed()
    found = judged(story.resume().ask(1, "0.0").done())
    assert requirements(found) == ["progress/not-again"]


def test_a_read_is_not_delivered_again_either(told, judged):
    turns = [("find", {"to": "A"})], [("pay", PAY)]
    story = told().ask(0).look("find", to="A").ask(1, "0.0").killed().resume()
    story.look("find", to="A").ask(1, "0.0").call("pay", "k", **PAY)
    found = judged(story.ask(2, "0.0", "1.0").done(), *turns)
    assert requirements(found) == ["progress/not-again"]


def test_going_back_is_told_once_for_each_call(told, judged):
    story = paid(told()).killed().resume().call("pay", "k", first=False, **PAY)
    story.killed().resume().call("pay", "k", first=False, **PAY).ask(1, "0.0").done()
    assert requirements(judged(story)) == ["progress/not-again"]


def test_a_refused_request_carried_nothing(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).ask(1, "0.0", problem="no")
    story.killed().resume().call("pay", "k", first=False, **PAY).ask(1, "0.0").done()
    assert not judged(story)


def test_an_equal_call_of_a_later_turn_is_no_repeat(told, judged):
    turns = [("pay", PAY)], {"say": "Again"}, [("pay", PAY)]
    story = paid(told()).ask(2, "0.0").call("pay", "k2", **PAY)
    assert not judged(story.ask(3, "0.0", "2.0").done(), *turns)


def test_both_equal_calls_carried_and_then_a_third(told, judged):
    turns = [("pay", PAY)], [("pay", PAY)]
    story = paid(told()).call("pay", "k2", **PAY).ask(2, "0.0", "1.0").killed()
    story.resume().call("pay", "k2", first=False, **PAY).ask(2, "0.0", "1.0").done()
    assert requirements(judged(story, *turns)) == ["progress/not-again"]


def test_a_lost_reply_may_be_asked_for_again(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).ask(1, "0.0").killed().resume()
    assert not judged(story.ask(1, "0.0").done())


# --- waits ---------------------------------------------------------------------------

WAIT = ({"wait": 3.0}, [("pay", PAY)])


def test_a_wait_that_took_its_time(told, judged):
    story = told().ask(0).end("parked").after(3.0).resume()
    assert not judged(
        story.ask(1, "0.0").call("pay", "k", **PAY).ask(2, "0.0", "1.0").done(), *WAIT
    )


def test_a_wait_that_was_cut_short(told, judged):
    story = told().after(1.0).ask(0).killed().after(2.0).resume().ask(1, "0.0")
    early = next(e.seq for e in story.events[::-1] if e.kind == "asked")
    (found,) = judged(story.fails(), *WAIT, max_attempts=1)
    assert found.requirement == "progress/waits-its-time"
    assert (found.expected, found.observed) == (3.0, 2.0)
    assert found.events == (early,)
    assert found.subject == "turn 0"


def test_a_wait_counts_from_when_it_was_first_asked_for(told, judged):
    story = told().ask(0).killed().after(2.0).resume().ask(0).after(1.0)
    assert not judged(story.ask(1, "0.0").fails(), *WAIT, max_attempts=1)


def test_two_clocks_of_one_machine_may_differ_a_little(told, judged):
    story = told().ask(0).killed().after(2.99).resume().ask(1, "0.0")
    assert not judged(story.fails(), *WAIT, max_attempts=1)


def parked_at(story, *times):
    """Lives that begin at these times, each parking for the same wait again."""
    story.ask(0).end("parked")
    for time in times:
        story.after(time - story.t).resume().end("parked")
    return story.resume()


def test_a_wait_that_is_begun_anew(told, judged):
    """It was over at 3 s; the life that began at 5 s set out to wait once more."""
    story = parked_at(told(), 3.0, 4.0, 5.0, 6.0).after(1.0).ask(1, "0.0")
    story.call("pay", "k", **PAY).ask(2, "0.0", "1.0").done()
    (found,) = judged(story, *WAIT)
    assert found.requirement == "progress/waits-its-time"
    assert "life 3, started 2.00 s after it was over" in found.message
    assert (found.expected, found.observed) == (3.0, 5.0)


def test_a_wait_may_end_late_by_a_rounded_second(told, judged):
    story = parked_at(told(), 3.0, 4.0).after(1.0).ask(1, "0.0")
    found = judged(story.call("pay", "k", **PAY).ask(2, "0.0", "1.0").done(), *WAIT)
    assert not found


def test_a_wait_that_had_to_be_asked_for_again_counts_from_then(told, judged):
    """The first life died before it could save when to go on."""
    story = told().ask(0).killed_at()
    story = parked_at(story.after(10.0).resume(), 13.0, 14.0).ask(1, "0.0")
    found = judged(story.call("pay", "k", **PAY).ask(2, "0.0", "1.0").done(), *WAIT)
    assert not found


@pytest.mark.parametrize(
    "kind", [FaultKind.EXPIRE, FaultKind.ROLLBACK, FaultKind.PAUSE]
)
def test_a_wait_whose_timer_the_store_forgot_has_to_be_begun_anew(told, judged, kind):
    story = told().ask(0).cross("redis", "set", "timer:{run}").struck(kind)
    story.end("parked")
    for time in (3.0, 4.1, 5.2):
        story.after(time - story.t).resume().end("parked")
    story.after(1.0).resume().ask(1, "0.0").call("pay", "k", **PAY)
    found = requirements(judged(story.ask(2, "0.0", "1.0").done(), *WAIT))
    assert found == (["progress/waits-its-time"] if kind is FaultKind.PAUSE else [])


def test_what_it_forgot_before_the_wait_was_asked_for_excuses_nothing(told, judged):
    story = told().cross("redis", "set", "x").struck(FaultKind.EXPIRE).crashed()
    story = parked_at(story.resume(), 3.0, 4.0, 5.0).after(1.0).ask(1, "0.0")
    found = judged(story.call("pay", "k", **PAY).ask(2, "0.0", "1.0").done(), *WAIT)
    assert requirements(found) == ["progress/waits-its-time"]


def test_nor_is_one_cut_short_because_its_timer_was_forgotten(told, judged):
    story = told().ask(0).cross("redis", "set", "timer:{run}").struck(FaultKind.EXPIRE)
    story.end("parked").after(1.0).resume().ask(1, "0.0").call("pay", "k", **PAY)
    found = judged(story.ask(2, "0.0", "1.0").done(), *WAIT)
    assert requirements(found) == ["progress/waits-its-time"]


def test_more_lives_are_no_more_readings(told, make_scenario, readings):
    """Read for each life anew, a long trial's waits take minutes."""
    scenario = make_scenario(*WAIT, tools={"pay": "keyed"})

    def judge(trial):
        return list(waits(trial, scenario, Losses()))

    stories = (parked_at(told(), *[3.0] * lives) for lives in (3, 30))
    few, many = (readings(judge, story.ask(1, "0.0").done()) for story in stories)
    assert few == many


def test_a_gate_may_stay_open_as_long_as_a_human_takes(told, judged):
    story = parked_at(told(), 30.0, 60.0).ask(1, "0.0").end("parked").after(3.0)
    story.resume().ask(2, "0.0", "1.0").done()
    assert not judged(story, {"ask": "Approve?"}, {"wait": 3.0})


def test_a_slow_machine_begins_nothing_anew(told, judged):
    """Life 0 took a minute to park: only then is its wait sure to be known."""
    story = told().ask(0).after(60.0).end("parked").resume().end("parked").after(3.0)
    story.resume().ask(1, "0.0").call("pay", "k", **PAY).ask(2, "0.0", "1.0").done()
    assert not judged(story, *WAIT)


# --- past the end --------------------------------------------------------------------


def test_past_the_end(told, judged):
    story = paid(told()).ask(2, "0.0", past_end=True)
    asked = story.seq - 2
    story.ask(3, "0.0", past_end=True)
    (found,) = judged(story.done())
    assert found.requirement == "progress/stops-at-the-end"
    assert found.events == (asked,)
    assert "ends at turn 1" in found.message


# --- once more after it was done -----------------------------------------------------


def again(story):
    return paid(story).end("done", code=0).start("again")


def test_after_done_it_asks_nothing(told, judged):
    story = again(told()).ask(1, "0.0")
    asked = story.seq - 2
    (found,) = judged(story.end("done").over("done"))
    assert found.requirement == "progress/resume-after-done"
    assert "asked the model for turn 1" in found.message
    assert found.events == (asked,)


def test_after_done_it_calls_nothing(told, judged):
    """One finding: that it is also a delivery after its result was carried follows."""
    story = again(told()).call("pay", "k", first=False, **PAY).end("done").over("done")
    (found,) = judged(story)
    assert found.requirement == "progress/resume-after-done"
    assert "called pay(order='o-1')" in found.message


@pytest.mark.parametrize("ending", ["died", "parked", "failed"])
def test_after_done_it_exits_with_0(told, judged, ending):
    story = again(told()).end(ending, code=3, tail=("no such run",)).over("done")
    (found,) = judged(story)
    assert found.requirement == "progress/resume-after-done"
    assert "exited with 3" in found.message
    assert "no such run" in found.message


def test_after_done_past_the_end_is_one_finding(told, judged):
    story = again(told()).ask(2, "0.0", past_end=True).end("done").over("done")
    assert requirements(judged(story)) == ["progress/resume-after-done"]


def test_after_done_it_may_write_to_its_own_store(told, judged):
    story = again(told()).cross("redis", "expire", "x").end("done").over("done")
    assert not judged(story)


def test_a_history_that_stops_in_the_life_after_done_is_no_crash(told, judged):
    assert requirements(judged(again(told()))) == ["progress/ends"]


def test_no_wait_is_judged_where_the_machine_s_clock_leapt(
    told, make_scenario, make_manifest
):
    """It says so: nobody is to take the trial for one that was in time."""
    scenario = make_scenario(*WAIT, tools={"pay": "keyed"})

    def judgement(*leaps):
        story = told().ask(0)
        for leap in leaps:
            story.add(leap)
        story = story.ask(1, "0.0").call("pay", "k", **PAY).ask(2, "0.0", "1.0").done()
        found = judge(story.trial(), scenario, make_manifest())
        waits = [e for e in found.findings if "waits" in e.requirement]
        return len(waits), [note for note in found.notes if "clock" in note]

    assert judgement() == (1, [])
    (note,) = judgement(ClockLeapt(life=-1, seconds=2.0))[1]
    assert "how long waits took was not judged" in note
    assert judgement(ClockLeapt(life=-1, seconds=2.0)) == (0, [note])
