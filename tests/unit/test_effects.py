"""`effects` on hand-written histories: each finding, and silence where all is well."""

import pytest

from chaoskit.checks.case import Case
from chaoskit.checks.effects import allowance, check
from chaoskit.model.manifest import Guarantee
from chaoskit.model.scenario import ToolClass

PAY = {"order": "o-1", "cents": 42000}
PAY_SPOKEN = "pay(order='o-1', cents=42000)"
CLASSES = ("read", "keyed", "queryable", "blind")
GUARANTEES = ("exactly-once", "at-least-once", "at-most-once")


@pytest.fixture(scope="module")
def judged(make_scenario, make_manifest):
    """What `effects` says of a story about a script with one or more calls of pay."""

    def judge(
        story, *turns, cls="keyed", guarantee="exactly-once", tools=None, schedule=None
    ):
        scenario = make_scenario(
            *(turns or ([("pay", PAY)],)), tools=tools or {"pay": cls}
        )
        return list(
            check(Case(story.trial(schedule), scenario, make_manifest(guarantee)))
        )

    return judge


def requirements(findings):
    return [finding.requirement for finding in findings]


def times(count, outcome):
    """The script's call, applied some times, each time in a life of its own."""

    def tell(story, cls):
        story.ask(0)
        for _ in range(count):
            story.call("pay", "k" if cls == "read" else None, **PAY).killed().resume()
        if outcome == "done":
            return story.ask(1, "0.0").done()
        return story.parks() if outcome == "parked" else story.fails()

    return tell


# Section 3 of the contract, word for word: how often an effect may be applied.
ALLOWED = {
    "read": {guarantee: {0, 1, 2, 3} for guarantee in GUARANTEES},
    "keyed": {
        "exactly-once": {1},
        "at-least-once": {1, 2, 3},
        "at-most-once": {0, 1},
    },
}
ALLOWED["queryable"] = ALLOWED["blind"] = ALLOWED["keyed"]


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("cls", CLASSES)
def test_the_words_of_the_table(cls, guarantee):
    """What `chaoskit doc contract` prints is what is judged."""
    words = allowance(ToolClass(cls), Guarantee(guarantee))
    counts = {"anything": {0, 1, 2, 3}, "0 or 1": {0, 1}, "1 or more": {1, 2, 3}}
    first, *_ = words.replace(";", ",").split(",")
    assert counts.get(first, {1}) == ALLOWED[cls][guarantee]


@pytest.mark.parametrize("outcome", ["done", "parked", "failed"])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("cls", CLASSES)
def test_the_table_of_the_contract(told, judged, cls, guarantee, count, outcome):
    found = judged(times(count, outcome)(told(), cls), cls=cls, guarantee=guarantee)
    if count in ALLOWED[cls][guarantee]:
        assert not found
    elif count == 0:
        # Missing only where the run says that it is done; else `progress` judges it.
        assert requirements(found) == ["effects/none-lost"] * (outcome == "done")
    else:
        assert requirements(found) == ["effects/once-across-kill"]
        assert (found[0].expected, found[0].observed) == (1, count)


def test_twice_names_both_applications(told, judged):
    story = told().ask(0).call("pay", "k1", **PAY)
    first = story.seq - 1
    story.killed().resume().call("pay", "k2", **PAY)
    second = story.seq - 1
    (found,) = judged(story.ask(1, "0.0").done())
    assert found.requirement == "effects/once-across-kill"
    assert found.subject == PAY_SPOKEN
    assert found.events == (first, second)
    assert f"0:tools.pay[o-1]#1:after (event {first})" in found.message
    assert f"1:tools.pay[o-1]#1:after (event {second})" in found.message
    assert "'k1', 'k2'" in found.message


def test_twice_without_a_key_says_so(told, judged):
    story = told().ask(0).call("pay", **PAY).killed().resume().call("pay", **PAY)
    (found,) = judged(story.ask(1, "0.0").done())
    assert "without an idempotency key" in found.message


@pytest.mark.parametrize("cls", ["queryable", "blind"])
def test_twice_where_no_key_helps_blames_no_key(told, judged, cls):
    story = told().ask(0).call("pay", "k", **PAY).killed().resume()
    (found,) = judged(story.call("pay", "k", **PAY).ask(1, "0.0").done(), cls=cls)
    assert found.requirement == "effects/once-across-kill"
    assert "Idempotency-Key" not in found.message


def test_a_repeat_under_the_same_key_is_right(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).killed().resume()
    assert not judged(story.call("pay", "k", first=False, **PAY).ask(1, "0.0").done())


def test_a_late_application_counts(told, judged):
    story = told().ask(0).deliver("pay", "k1", **PAY).killed()
    story.call("pay", late=True, **PAY)
    story.resume().call("pay", **PAY).ask(1, "0.0").done()
    assert requirements(judged(story)) == ["effects/once-across-kill"]


def test_a_late_application_alone_is_once(told, judged):
    story = told().ask(0).cross("redis", "set", "x").killed()
    story.call("pay", "k", late=True, **PAY)
    story.resume().call("pay", "k", first=False, **PAY).ask(1, "0.0").done()
    assert not judged(story)


def test_a_held_delivery_counts_for_its_key(told, judged):
    """Applied once, and yet the second attempt could not have been recognised."""
    story = told().ask(0).deliver("pay", "k1", **PAY).killed().resume()
    held = next(e.seq for e in story.events if e.kind == "delivered")
    story.call("pay", "k2", **PAY)
    sent = story.seq - 2
    (found,) = judged(story.ask(1, "0.0").done())
    assert found.requirement == "effects/stable-key"
    assert story.events[sent - 1].kind == "delivered"
    assert found.events == (held, sent - 1)
    assert (found.subject, found.expected, found.observed) == (PAY_SPOKEN, 1, 2)


def test_a_changed_key_is_found_under_at_least_once_too(told, judged):
    story = told().ask(0).call("pay", "k1", **PAY).killed().resume()
    story.call("pay", "k2", **PAY).ask(1, "0.0").done()
    found = judged(story, guarantee="at-least-once")
    assert requirements(found) == ["effects/stable-key"]


def test_a_changed_key_that_applied_twice_is_one_finding(told, judged):
    story = told().ask(0).call("pay", "k1", **PAY).killed().resume()
    story.call("pay", "k2", **PAY).ask(1, "0.0").done()
    assert requirements(judged(story)) == ["effects/once-across-kill"]


def test_calls_without_a_key_equal_no_other(told, judged):
    """Nor is it a finding by itself that there is none."""
    story = told().ask(0).deliver("pay", **PAY).killed().resume()
    story.call("pay", **PAY).call("pay", order="o-2").ask(1, "0.0", "0.1").done()
    turn = [("pay", PAY), ("pay", {"order": "o-2"})]
    assert not judged(story, turn)


def test_a_key_once_sent_and_once_not_is_no_changed_key(told, judged):
    story = told().ask(0).deliver("pay", **PAY).killed().resume()
    assert not judged(story.call("pay", "k", **PAY).ask(1, "0.0").done())


TWO = ([("pay", PAY), ("pay", {"order": "o-2"})],)


def test_one_key_for_two_calls_is_one_finding(told, judged):
    """The second call is swallowed, and that it is missing follows from the key."""
    story = told().ask(0).call("pay", "k", **PAY)
    one = story.seq - 3
    story.call("pay", "k", first=False, order="o-2")
    other = story.seq - 3
    (found,) = judged(story.ask(1, "0.0", "0.1").done(), *TWO)
    assert found.requirement == "effects/distinct-key"
    assert (found.observed, found.subject) == ("k", "pay(order='o-2')")
    assert found.events == (one, other)


def test_one_key_for_two_held_calls_is_found(told, judged):
    story = told().ask(0).deliver("pay", "k", **PAY).killed()
    story.resume().deliver("pay", "k", order="o-2").killed().resume().fails()
    assert requirements(judged(story, *TWO)) == ["effects/distinct-key"]


def test_one_key_may_stand_for_calls_of_different_tools(told, judged):
    """A key is known per tool: section 5 of the contract."""
    story = told().ask(0).call("pay", "k", **PAY).call("hold", "k", order="o-1")
    turn = [("pay", PAY), ("hold", {"order": "o-1"})]
    tools = {"pay": "keyed", "hold": "keyed"}
    assert not judged(story.ask(1, "0.0", "0.1").done(), turn, tools=tools)


def test_the_same_key_for_reads_means_nothing(told, judged):
    story = told().ask(0).look("find", key="k", to="A").look("find", key="k", to="B")
    turn = [("find", {"to": "A"}), ("find", {"to": "B"}), ("pay", PAY)]
    story.call("pay", "k", **PAY).ask(1, "0.0", "0.1", "0.2").done()
    assert not judged(story, turn, tools={"find": "read", "pay": "keyed"})


EQUAL = ([("pay", PAY), ("pay", PAY)],)
LATER = ([("pay", PAY)], {"say": "Once more"}, [("pay", PAY)])


def test_two_equal_calls_are_two_effects(told, judged):
    story = told().ask(0).call("pay", "k1", **PAY).call("pay", "k2", **PAY)
    assert not judged(story.ask(1, "0.0", "0.1").done(), *EQUAL)


def test_two_equal_calls_applied_three_times(told, judged):
    story = told().ask(0).call("pay", "k1", **PAY).call("pay", "k2", **PAY)
    story.killed().resume().call("pay", "k3", **PAY).ask(1, "0.0", "0.1").done()
    (found,) = judged(story, *EQUAL)
    assert found.requirement == "effects/once-across-kill"
    assert (found.expected, found.observed) == (2, 3)


def test_two_equal_calls_under_one_key(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).call("pay", "k", first=False, **PAY)
    found = judged(story.ask(1, "0.0", "0.1").done(), *EQUAL)
    assert requirements(found) == ["effects/distinct-key"]


def test_a_retry_of_one_of_two_equal_calls_shares_nothing(told, judged):
    """The run gave up before it came to the other."""
    story = told().ask(0).call("pay", "k", **PAY).killed().resume()
    assert not judged(story.call("pay", "k", first=False, **PAY).fails(), *EQUAL)


def test_an_equal_call_without_a_key_shares_nothing(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).call("pay", **PAY)
    assert not judged(story.ask(1, "0.0", "0.1").done(), *EQUAL)


def test_one_of_two_equal_calls_was_never_made(told, judged):
    story = told().ask(0).call("pay", "k1", **PAY).ask(1, "0.0", "0.1").done()
    found = judged(story, *EQUAL)
    assert requirements(found) == ["effects/none-lost"]
    assert (found[0].expected, found[0].observed) == (2, 1)


def test_a_retry_of_the_first_equal_call_is_not_the_second(told, judged):
    """The second one was asked for only later, and never made."""
    story = told().ask(0).call("pay", "k", **PAY).killed().resume()
    story.call("pay", "k", first=False, **PAY)
    story.ask(1, "0.0").ask(2, "0.0").ask(3, "0.0", "2.0").done()
    assert requirements(judged(story, *LATER)) == ["effects/none-lost"]


def test_the_second_equal_call_under_the_key_of_the_first(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).ask(1, "0.0").ask(2, "0.0")
    story.call("pay", "k", first=False, **PAY).ask(3, "0.0", "2.0").done()
    assert requirements(judged(story, *LATER)) == ["effects/distinct-key"]


@pytest.mark.parametrize("keys", [("k1", "k2"), (None, None)])
def test_twice_before_the_second_equal_call_was_asked_for(told, judged, keys):
    """It would come out right in the end, if the run came to its end."""
    story = told().ask(0).call("pay", keys[0], **PAY).killed().resume()
    story.call("pay", keys[1], **PAY).fails()
    assert requirements(judged(story, *LATER)) == ["effects/once-across-kill"]


def test_a_changed_key_before_the_second_equal_call_was_asked_for(told, judged):
    story = told().ask(0).deliver("pay", "k1", **PAY).killed().resume()
    story.call("pay", "k2", **PAY).fails()
    assert requirements(judged(story, *LATER)) == ["effects/stable-key"]


def test_done_and_never_applied_names_the_end(told, judged):
    story = told().ask(0).ask(1, "0.0").done()
    (found,) = judged(story)
    assert found.requirement == "effects/none-lost"
    assert found.events == (story.seq,)
    assert found.subject == PAY_SPOKEN


@pytest.mark.parametrize("outcome", ["endless", "cut", "parked", "failed"])
def test_nothing_is_missing_where_the_run_is_not_done(told, judged, outcome):
    assert not judged(told().ask(0).over(outcome))


def test_what_nobody_asked_for(told, judged):
    story = told().ask(0).call("pay", "k", order="o-1", cents=42000)
    story.call("pay", "x", order="o-9")
    stray = story.seq - 3
    (found,) = judged(story.ask(1, "0.0").done())
    assert found.requirement == "effects/only-what-was-asked"
    assert found.observed == found.subject == "pay(order='o-9')"
    assert found.expected == PAY_SPOKEN
    assert found.events == (stray,)
    assert found.message.endswith(f"the script has {PAY_SPOKEN}.")


def test_what_nobody_asked_for_is_told_once(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).call("pay", "x", order="o-9")
    story.killed().resume().call("pay", "x", first=False, order="o-9")
    found = judged(story.ask(1, "0.0").done())
    assert requirements(found) == ["effects/only-what-was-asked"]


@pytest.mark.parametrize("turn", [{"ask": "Pay?"}, [("find", {"to": "A"})]])
def test_what_nobody_had_asked_for_yet_is_found(told, judged, turn):
    """Sent on a guess; or past a gate that nobody has opened."""
    turns, tools = (turn, [("pay", PAY)]), {"find": "read", "pay": "keyed"}
    story = told().ask(0).call("pay", "k", **PAY)
    sent = story.seq - 3
    story.ask(1, "0.0").call("pay", "k", first=False, **PAY).ask(2, "0.0", "1.0")
    (found,) = judged(story.done(), *turns, tools=tools)
    assert found.requirement == "effects/only-what-was-asked"
    assert (found.subject, found.events) == (PAY_SPOKEN, (sent,))
    assert "before the model had asked for it" in found.message


def test_a_request_that_was_refused_has_asked_for_nothing(told, judged):
    story = told().ask(0, problem="refused").call("pay", "k", **PAY).ask(0)
    found = judged(story.call("pay", "k", first=False, **PAY).ask(1, "0.0").done())
    assert requirements(found) == ["effects/only-what-was-asked"]


def test_changed_arguments_under_the_same_key_are_one_cause(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).killed().resume()
    story.call("pay", "k", first=False, **PAY, attempt=2).ask(1, "0.0").done()
    assert requirements(judged(story)) == ["effects/only-what-was-asked"]


def test_a_read_with_arguments_of_its_own_is_no_effect(told, judged):
    story = told().ask(0).look("find", to="B").call("pay", "k", **PAY)
    tools = {"find": "read", "pay": "keyed"}
    assert not judged(story.ask(1, "0.0").done(), tools=tools)


@pytest.mark.parametrize(
    "sent", [{"cents": 42000, "order": "o-1"}, {"order": "o-1", "cents": 42000.0}]
)
def test_arguments_are_recognised_whatever_their_order_and_writing(told, judged, sent):
    assert not judged(told().ask(0).call("pay", "k", **sent).ask(1, "0.0").done())


@pytest.mark.parametrize(
    "sent",
    [
        {"order": "o-1", "cents": "42000"},
        {"order": "o-1"},
        {"order": "o-1", "cents": 42000, "note": None},
    ],
)
def test_other_arguments_are_another_call(told, judged, sent):
    found = judged(told().ask(0).call("pay", "k", **sent).ask(1, "0.0").done())
    assert "effects/only-what-was-asked" in requirements(found)


def test_true_is_not_one(told, judged):
    story = told().ask(0).call("pay", "k", yes=1).ask(1, "0.0").done()
    found = judged(story, [("pay", {"yes": True})])
    assert "effects/only-what-was-asked" in requirements(found)


def test_a_tool_that_the_scenario_does_not_know_is_no_crash(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).call("gone", order="o-1")
    (found,) = judged(story.ask(1, "0.0").done())
    assert found.requirement == "effects/only-what-was-asked"
    assert found.expected == "no call of that tool"


def test_parallel_calls_of_one_tool_are_placed_each_at_its_own_crossing(told, judged):
    story = told().ask(0).call("pay", "a", **PAY).call("pay", "b", order="o-2")
    story.killed().resume().call("pay", "c", order="o-2").ask(1, "0.0", "0.1").done()
    (found,) = judged(story, *TWO)
    assert "0:tools.pay[o-2]#1:after" in found.message
    assert "o-1" not in found.message


def test_more_calls_are_no_more_readings(told, make_scenario, make_manifest, readings):
    """Read for each call anew, a long trial takes seconds."""
    scenario = make_scenario([("pay", PAY)], tools={"pay": "keyed"})

    def judge(trial):
        return list(check(Case(trial, scenario, make_manifest())))

    few, many = told().ask(0), told().ask(0)
    for story, lives in ((few, 3), (many, 30)):
        for _ in range(lives):
            story.call("pay", "k", first=story.life == 0, **PAY).killed().resume()
        story.ask(1, "0.0").done()
    assert readings(judge, few) == readings(judge, many)
