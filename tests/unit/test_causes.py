"""Which finding follows from which: each link on a history that shows both of them."""

from itertools import chain

import pytest

from chaoskit.checks import REQUIREMENTS, causes, judge
from chaoskit.checks.case import Golden
from chaoskit.checks.causes import linked
from chaoskit.model.address import Edge
from chaoskit.model.faults import FaultKind
from chaoskit.model.verdict import Finding

PAY, PAY_2 = {"order": "o-1"}, {"order": "o-2"}
RESULTS = {"0.0": "paid the first", "0.1": "paid the second", "1.0": "answer 1"}
GOLDEN = Golden("Done.", 1, RESULTS)
USER = {"role": "user", "content": "Pay"}
CALLS = {"role": "assistant", "tool_calls": [{"id": "a"}]}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "paid"}
LAST = {"role": "assistant", "content": "Done."}
WHOLE = [USER, CALLS, RESULT, LAST]


# --- histories -----------------------------------------------------------------------


def silent_success(story):
    return story.ask(0).done()


def went_back(story):
    story.ask(0).call("pay", "k-1", **PAY).ask(1, "0.0").killed()
    return story.resume().ask(0).call("pay", "k-2", **PAY).ask(1, "0.0").done()


def another_key_for_what_was_over(story):
    """Held before it could be applied."""
    story.ask(0).call("pay", "k-1", **PAY).ask(1, "0.0").killed()
    story.resume().deliver("pay", "k-2", **PAY).killed()
    return story.resume().ask(1, "0.0").done()


def asked_again_under_another_key(story):
    """As where the model's own id of the call is the key."""
    story.ask(0).deliver("pay", "call_a", **PAY).killed().resume()
    return story.ask(0).call("pay", "call_b", **PAY).ask(1, "0.0").done()


def told_a_result_at_a_gate(story):
    story.ask(0).call("pay", "k", **PAY).ask(1, "0.0").end("parked", code=75)
    story.start("answer", "answer 1")
    return story.ask(2, "0.0", "1.0", results={"1.0": "paid the first"}).done()


def went_on_behind_an_open_call(story):
    story.ask(0).call("pay", "k", **PAY).killed()
    story.inspected("death", 1, transcript=[USER, CALLS, USER])
    return story.resume().ask(1, problem="a call has no result").fails()


def one_key_for_two(story):
    results = {"0.0": "paid the first", "0.1": "paid the first"}
    story.ask(0).call("pay", "k-1", **PAY).call("pay", "k-2", **PAY_2).killed()
    story.resume().call("pay", "k-1", first=False, **PAY_2)
    return story.ask(1, "0.0", "0.1", results=results).done()


def other_arguments(story):
    return story.ask(0).call("pay", order="o-9").ask(1, "0.0").done()


def asked_a_person_twice(story):
    story.ask(0).call("pay", "k", **PAY).ask(1, "0.0").end("parked", code=75)
    story.start("answer", "answer 1")
    story.ask(2, "0.0", "1.0", results={"1.0": "answer 1"}).killed()
    story.resume().ask(0).call("pay", "k", first=False, **PAY).ask(1, "0.0")
    story.end("parked", code=75).start("answer", "answer 1")
    return story.ask(2, "0.0", "1.0", results={"1.0": "answer 1"}).done()


def took_a_torn_file_for_none(story):
    story.log("checkpoint", 0).ask(0).call("pay", "k", **PAY).log("checkpoint", 2)
    story.ask(1, "0.0").cross("files", "write", "state", after=False)
    story.struck(FaultKind.TEAR, Edge.of_part(1)).end("died", "fault")
    story.resume().log("checkpoint", 1).ask(0).call("pay", "k", first=False, **PAY)
    return story.ask(1, "0.0").done()


def read_an_older_one(story):
    story.log("start", 0).ask(0).call("pay", "k", **PAY).log("checkpoint", 3)
    story.ask(1, "0.0").killed().inspected("death", 2)
    story.resume().log("checkpoint", 2).ask(0).call("pay", "k", first=False, **PAY)
    return asks_after_done(story.ask(1, "0.0"))


def counted_anew(story):
    story.ask(0).log("checkpoint", 3).killed()
    story.inspected("death", 3, transcript=[USER]).resume().log("checkpoint", 2)
    story.call("pay", "k", **PAY).ask(1, "0.0").killed()
    story.inspected("death", 2, transcript=WHOLE)
    return story.resume().ask(1, "0.0").done()


def lost_the_end(story):
    story.ask(0).call("pay", "k", **PAY).ask(1, "0.0").killed()
    story.inspected("death", 3, transcript=WHOLE)
    story.resume().cross("redis", "set", "x").killed()
    story.inspected("death", 3, transcript=[USER])
    story.resume().ask(0).call("pay", "k", first=False, **PAY)
    return asks_after_done(story.ask(1, "0.0"))


def asks_after_done(story):
    story.end("done", code=0).start("again").ask(1, "0.0")
    return story.end("done", code=0).over("done")


def goes_on_after_a_takeover(number=5, status="done", transcript=WHOLE):
    """A life that was paused; and what is stored after it, when it was 5 and done."""

    def tell(story):
        story.ask(0).cross("redis", "set", "x", after=False)
        story.struck(FaultKind.PAUSE, Edge.BEFORE)
        story.resume().call("pay", "k", **PAY).ask(1, "0.0").end("done", code=0)
        story.inspected("rest", 5, status="done", transcript=[*WHOLE[:3]])
        story.continued(0).cross("redis", "get", "x")
        story.ask(0).call("pay", "k", first=False, **PAY).end("done", code=0)
        story.inspected("rest", number, status=status, transcript=transcript)
        return story.over("done")

    return tell


def done_too_early(story):
    return asks_after_done(story.ask(0).call("pay", "k", **PAY))


def acts_after_done(story):
    story.ask(0).call("pay", "k-1", **PAY).ask(1, "0.0").end("done", code=0)
    story.start("again").call("pay", "k-2", **PAY).end("done", code=0)
    return story.over("done")


def waits_anew_for_ever(story):
    story.ask(0).end("parked", code=75).after(60).resume()
    return story.end("parked", code=75).over("endless")


def cannot_read(outcome):
    def tell(story):
        story.ask(0).killed().inspected("death", 3, transcript=[USER])
        story.resume().cross("redis", "set", "x").killed()
        story.inspected("death", problem="it said nothing")
        return story.resume().fails() if outcome == "failed" else story.over(outcome)

    return tell


def was_refused(outcome):
    return lambda story: story.ask(0, problem="refused").over(outcome)


OLD_STATUS = goes_on_after_a_takeover(4, "running", WHOLE[:2])
OLD_CHECKPOINT = goes_on_after_a_takeover(4, "done", WHOLE[:2])
MORE_UNDER_LESS = goes_on_after_a_takeover(4)
RUNS_WITH_MORE = goes_on_after_a_takeover(4, "running")
CUT = goes_on_after_a_takeover(5, "done", WHOLE[:1])
RUNS_CUT = goes_on_after_a_takeover(5, "running", WHOLE[:1])
UNPAIRED = goes_on_after_a_takeover(6, "done", [USER, CALLS, LAST])

PLAIN = ([("pay", PAY)],)
TWO = ([("pay", PAY), ("pay", PAY_2)],)
GATE = ([("pay", PAY)], {"ask": "Go on?"})
WAIT = ({"wait": 2.0},)

LINKS = {
    ("answer/same", "loud/no-silent-success"): silent_success,
    ("effects/none-lost", "loud/no-silent-success"): silent_success,
    ("effects/none-lost", "effects/only-what-was-asked"): other_arguments,
    ("effects/once-across-kill", "progress/not-again"): went_back,
    ("effects/once-across-kill", "cost/not-asked-again"): went_back,
    ("effects/stable-key", "progress/not-again"): another_key_for_what_was_over,
    ("effects/stable-key", "effects/distinct-key"): one_key_for_two,
    ("effects/stable-key", "cost/not-asked-again"): asked_again_under_another_key,
    ("transcript/right-result", "effects/distinct-key"): one_key_for_two,
    ("transcript/right-result", "human/own-answer"): told_a_result_at_a_gate,
    ("transcript/valid-request", "transcript/stored-pairs"): (
        went_on_behind_an_open_call
    ),
    ("cost/not-asked-again", "human/asked-once"): asked_a_person_twice,
    ("cost/not-asked-again", "loud/unreadable-kept"): took_a_torn_file_for_none,
    ("cost/not-asked-again", "store/newest"): read_an_older_one,
    ("cost/not-asked-again", "store/whole"): lost_the_end,
    ("cost/not-asked-again", "fence/no-effect"): MORE_UNDER_LESS,
    ("progress/not-again", "cost/not-asked-again"): went_back,
    ("progress/not-again", "human/asked-once"): asked_a_person_twice,
    ("progress/not-again", "loud/unreadable-kept"): took_a_torn_file_for_none,
    ("progress/not-again", "store/newest"): read_an_older_one,
    ("progress/not-again", "store/whole"): lost_the_end,
    ("progress/not-again", "fence/no-effect"): MORE_UNDER_LESS,
    ("progress/resume-after-done", "store/newest"): read_an_older_one,
    ("progress/resume-after-done", "store/whole"): lost_the_end,
    ("log/checkpoint-ids-never-fall", "loud/unreadable-kept"): (
        took_a_torn_file_for_none
    ),
    ("log/checkpoint-ids-never-fall", "store/newest"): read_an_older_one,
    ("log/checkpoint-ids-never-fall", "store/ids-rise"): counted_anew,
    ("loud/no-silent-success", "progress/resume-after-done"): done_too_early,
    ("transcript/stored-pairs", "fence/no-checkpoint"): UNPAIRED,
    ("fence/no-checkpoint", "fence/no-effect"): OLD_CHECKPOINT,
    ("fence/no-status", "fence/no-effect"): OLD_STATUS,
    ("store/newest", "fence/no-effect"): OLD_STATUS,
    ("store/newest", "fence/no-checkpoint"): OLD_CHECKPOINT,
    ("store/newest", "fence/no-status"): OLD_STATUS,
    ("store/ids-rise", "fence/no-effect"): MORE_UNDER_LESS,
    ("store/ids-rise", "fence/no-checkpoint"): MORE_UNDER_LESS,
    ("store/ids-rise", "fence/no-status"): RUNS_WITH_MORE,
    ("store/whole", "fence/no-effect"): CUT,
    ("store/whole", "fence/no-checkpoint"): CUT,
    ("store/whole", "fence/no-status"): RUNS_CUT,
    ("progress/ends", "transcript/valid-request"): was_refused("endless"),
    ("progress/ends", "progress/waits-its-time"): waits_anew_for_ever,
    ("progress/ends", "store/readable"): cannot_read("endless"),
    ("progress/fails-for-a-reason", "transcript/valid-request"): was_refused("failed"),
    ("progress/fails-for-a-reason", "store/readable"): cannot_read("failed"),
    ("progress/parks-for-a-reason", "transcript/valid-request"): was_refused("parked"),
    ("effects/once-across-kill", "progress/resume-after-done"): acts_after_done,
}
TURNS = {
    one_key_for_two: TWO,
    asked_a_person_twice: GATE,
    told_a_result_at_a_gate: GATE,
    waits_anew_for_ever: WAIT,
}


# --- each link -----------------------------------------------------------------------


def told_links():
    """Every link that is in the tables."""
    for tables in (causes._SAME_CALL, causes._SAME_TOOL):
        yield from tables.items()
    for finding, found in causes._SAME_TRIAL.items():
        yield from ((finding, cause) for cause in found)
    yield "effects/once-across-kill", causes._AGAIN


@pytest.mark.parametrize(
    ("finding", "cause"),
    [pytest.param(*link, id=" from ".join(link)) for link in LINKS],
)
def test_a_finding_follows_from_its_cause_and_stands_for_itself_without_it(
    told, make_scenario, make_manifest, finding, cause
):
    """And never does the cause follow from what came of it."""
    tell = LINKS[finding, cause]
    trial = tell(told()).trial()
    scenario = make_scenario(*TURNS.get(tell, PLAIN), tools={"pay": "keyed"})
    judgement = judge(trial, scenario, make_manifest(), GOLDEN)
    assert not judgement.doubts
    found = {each.requirement: each for each in judgement.findings}
    assert {finding, cause} <= found.keys()
    for pair in ([found[finding], found[cause]], [found[cause], found[finding]]):
        follows = {each.requirement: each.follows for each in linked(pair, trial)}
        assert follows == {finding: cause, cause: ""}
    (alone,) = linked([found[finding]], trial)
    assert alone.follows == ""


def test_every_link_has_a_history():
    assert {*told_links()} == {*LINKS}


def test_links_name_requirements_that_there_are():
    assert {*chain.from_iterable(LINKS)} <= {*REQUIREMENTS}


def test_no_two_findings_explain_each_other_away():
    """Else a run that broke both would have broken nothing of its own."""
    known: dict[str, set[str]] = {}
    for finding, cause in told_links():
        known.setdefault(finding, set()).add(cause)

    def behind(finding, path):
        assert finding not in path, path
        for cause in known.get(finding, ()):
            behind(cause, (*path, finding))

    for finding in known:
        behind(finding, ())


# --- what does not follow ------------------------------------------------------------


def finding(requirement, subject, *events):
    promise = requirement.partition("/")[0]
    return Finding(promise, requirement, "...", 1, 2, subject, events)


@pytest.mark.parametrize("of", ["effects/once-across-kill", "effects/stable-key"])
def test_another_call_that_was_delivered_again_explains_nothing(told, of):
    other = finding("progress/not-again", "pay(order='o-2')")
    trial = told().ask(0).done().trial()
    one, _ = linked([finding(of, "pay(order='o-1')"), other], trial)
    assert one.follows == ""


def test_a_call_of_another_tool_that_nobody_asked_for_explains_nothing(told):
    lost = finding("effects/none-lost", "pay(order='o-1')")
    stray = finding("effects/only-what-was-asked", "mail(order='o-1')")
    one, _ = linked([lost, stray], told().ask(0).done().trial())
    assert one.follows == ""


def test_what_was_done_before_the_end_does_not_follow_from_what_came_after(told):
    story = acts_after_done(told())
    (after,) = (e.seq for e in story.events if e.kind == "applied" and e.life == 1)
    again = finding("progress/resume-after-done", "", after)
    late = finding("effects/once-across-kill", "pay(order='o-1')", after)
    early = finding("effects/once-across-kill", "pay(order='o-2')", 1)
    found = linked([late, early, again], story.trial())
    assert [each.follows for each in found] == [again.requirement, "", ""]
