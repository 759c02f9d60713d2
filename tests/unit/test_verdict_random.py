"""Random histories: no check may raise on any of them, nor pass what proves nothing."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.checks import CHECKS, judge
from chaoskit.checks.case import NOTHING, Case, Golden
from chaoskit.model.address import Edge
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import (
    EVENTS,
    ClockLeapt,
    Leaked,
    RunEnded,
    StatusSeen,
    from_line,
    to_line,
)
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Verdict

ARGS = st.sampled_from([{"order": "o-1"}, {"order": "o-2"}, {}, {"n": None}])
TOOLS = st.sampled_from(["pay", "mail", "find", "undeclared"])
KEYS = st.sampled_from([None, "k1", "k2"])
TURNS = st.integers(0, 6)
CARRIED = st.lists(st.sampled_from(["0.0", "0.1", "1.0", "2.0", "9.9"]), max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2)
    ),
    max_leaves=4,
)
NAMES = st.sampled_from(
    ["event", "run_id", "step", "checkpoint_id", "call", "level", "x"]
)
WORDS = st.sampled_from(["run.start", "run.end", "tool.intent", "tool.result", "", 3])
LINES = st.dictionaries(NAMES, JSON, max_size=7) | st.builds(
    lambda event, entry: {"run_id": "run-0a1b2c3d", "step": 1, **entry, "event": event},
    WORDS,
    st.dictionaries(NAMES, JSON, max_size=4),
)
FAULT = Fault.parse("kill@0:tools.pay[o-1]#7:before")

RESULTS = st.dictionaries(
    st.sampled_from(["0.0", "0.1", "1.0", "3.0", "9.9"]),
    st.sampled_from(["paid", "answer 3", "run-0a1b2c3d", ""]),
    max_size=3,
)
ANSWERS = st.sampled_from([None, "answer 3", "something else"])
FACTS = st.sampled_from([None, "Done.", "run-0a1b2c3d", ""])
STRUCK = st.sampled_from(
    [
        (FaultKind.DROP_REPLY, Edge.AFTER, None),
        (FaultKind.ERROR, Edge.BEFORE, None),
        (FaultKind.ROLLBACK, Edge.AFTER, "1"),
        (FaultKind.EXPIRE, Edge.AFTER, None),
        (FaultKind.RESTART, Edge.AFTER, None),
        (FaultKind.PAUSE, Edge.AFTER, None),
        (FaultKind.DELAY, Edge.BEFORE, None),
        (FaultKind.DUPLICATE, Edge.BEFORE, None),
        (FaultKind.TEAR, Edge.of_part(1), None),
        (FaultKind.SKEW, Edge.BEFORE, "-3600"),
        (FaultKind.TERM, Edge.BEFORE, None),
    ]
)
CALLED = st.fixed_dictionaries(
    {"role": st.just("assistant")},
    optional={
        "content": JSON,
        "tool_calls": st.lists(
            st.fixed_dictionaries({"id": st.sampled_from(["a", "b"])}) | JSON,
            max_size=2,
        ),
    },
)
ANSWERED = st.fixed_dictionaries(
    {"role": st.just("tool"), "tool_call_id": st.sampled_from(["a", "b", "c"])}
)
TRANSCRIPTS = st.none() | JSON | st.lists(CALLED | ANSWERED | JSON, max_size=4)
PLACES = ["standard error", "redis key run:{run}", "a call of pay"]
PURPOSES = st.sampled_from(["start", "resume", "answer", "again", "submit"])
ENDINGS = st.sampled_from(["done", "parked", "failed", "died"])
OUTCOMES = st.sampled_from(["done", "parked", "failed", "endless", "cut"])
CAUSES = ["itself", "fault", "asked", "limit", "stopped", "restored", "cut"]

STEPS = st.one_of(
    st.tuples(
        st.just("ask"),
        TURNS,
        CARRIED,
        st.sampled_from([None, "refused"]),
        st.booleans(),
        st.booleans(),
        RESULTS,
    ),
    st.tuples(st.just("deliver"), TOOLS, KEYS, ARGS),
    st.tuples(st.just("call"), TOOLS, KEYS, st.booleans(), st.booleans(), ARGS),
    st.tuples(st.just("look"), TOOLS, ARGS),
    st.tuples(st.just("twice"), st.booleans()),
    st.tuples(
        st.just("cross"),
        st.sampled_from(["redis", "postgres", "files", "llm", "smtp"]),
        st.sampled_from(["set", "get", "tx", "chat", "send"]),
        st.sampled_from([None, "x"]),
    ),
    st.tuples(st.just("line"), LINES, st.sampled_from(["stderr", "stdout"])),
    st.tuples(st.just("after"), st.floats(0, 100)),
    st.tuples(st.just("start"), PURPOSES, ANSWERS),
    st.tuples(st.just("process"), st.sampled_from(["worker.1", "worker.2"])),
    st.tuples(st.just("status"), st.sampled_from([None, "running", "parked", "done"])),
    st.tuples(st.just("killed"), st.sampled_from(["fault", "restored", "cut"])),
    st.tuples(st.just("struck"), STRUCK),
    st.tuples(st.just("continued"), st.integers(0, 3)),
    st.tuples(st.just("overtaken"), ENDINGS),
    st.tuples(
        st.just("inspected"),
        st.sampled_from(["death", "rest", "end"]),
        st.none() | st.integers(-1, 4),
        st.sampled_from([None, "running", "parked", "done"]),
        TRANSCRIPTS,
        st.sampled_from(["", "", "it said nothing"]),
    ),
    st.tuples(st.just("leaked"), st.sampled_from(PLACES)),
    st.tuples(st.just("leapt"), st.sampled_from([-3600.0, 0.5])),
    st.tuples(st.just("end"), ENDINGS, st.sampled_from(CAUSES)),
    st.tuples(st.just("over"), OUTCOMES),
    st.tuples(st.just("ended"), OUTCOMES, FACTS),
)


def tell(story, step):
    """One random event, or a few that belong together."""
    life = story.life
    match step:
        case ("ask", turn, carried, problem, past_end, reply, results):
            more = {"problem": problem, "past_end": past_end, "results": results}
            story.ask(turn, *carried, reply=reply, **more)
        case ("deliver", tool, key, args):
            story.deliver(tool, key, **args)
        case ("call", tool, key, first, late, args):
            story.call(tool, key, first=first, late=late, **args)
        case ("look", tool, args):
            story.look(tool, **args)
        case ("twice", lands):
            twice(story, lands)
        case ("process", name):
            story.start("resume")
            started = story.events.pop()
            story.add(started.model_copy(update={"process": name}))
        case ("status", status):
            story.add(StatusSeen(life=life, status=status))
        case ("killed", cause):
            story.killed_at() if story.last is None else story.killed(cause=cause)
        case ("struck", (kind, edge, argument)):
            strike(story, kind, edge, argument)
        case ("continued", other):
            story.continued(min(other, max(e.life for e in story.events)))
        case ("overtaken", ending):
            strike(story, FaultKind.PAUSE, Edge.BEFORE, None)
            story.resume().end(ending).continued(life)
        case ("inspected", when, number, status, transcript, problem):
            more = {"status": status, "transcript": transcript, "problem": problem}
            story.inspected(when, number, **more)
        case ("leapt", seconds):
            story.add(ClockLeapt(life=-1, seconds=seconds))
        case ("leaked", where):
            story.add(Leaked(life=life, where=where))
        case ("ended", outcome, answer):
            story.add(RunEnded(life=life, outcome=outcome, answer=answer))
        case (name, *rest):
            getattr(story, name)(*rest)


def twice(story, lands):
    """The network delivers the newest call once more."""
    sent = next((e for e in story.events[::-1] if e.kind == "delivered"), None)
    if sent is not None:
        story.add(sent.model_copy(update={"duplicate": True}))
        if lands:
            story.lands(story.events[-1])


def strike(story, kind, edge, argument):
    """A fault, where there is such a one at the message that crossed last."""
    if story.last is None:
        return
    fault = Fault(kind, story.last.at_edge(edge), argument)
    try:
        Fault.parse(str(fault))
    except ValueError:
        return
    story.struck(kind, edge, argument)


@pytest.fixture(scope="module")
def scenario(make_scenario):
    return make_scenario(
        [("pay", {"order": "o-1"}), ("pay", {"order": "o-1"})],
        {"wait": 2.0},
        [("mail", {"order": "o-2"})],
        {"ask": "Go on?"},
        [("find", {}), ("pay", {"order": "o-1"})],
        tools={"pay": "keyed", "mail": "blind", "find": "read"},
    )


MANIFESTS = st.tuples(
    st.sampled_from(["exactly-once", "at-least-once", "at-most-once"]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from(["last-checkpoint", "earlier-checkpoint", "start"]),
)


GOLDEN = st.just(NOTHING) | st.builds(
    Golden, FACTS, st.none() | st.integers(0, 6), RESULTS
)


def told_by(story, steps):
    for step in steps:
        tell(story, step)
    return story


@settings(max_examples=400, deadline=None)
@given(
    steps=st.lists(STEPS, max_size=30),
    manifest=MANIFESTS,
    golden=GOLDEN,
    unfired=st.sampled_from([(), (FAULT,)]),
)
def test_no_history_makes_a_check_raise(
    told, scenario, make_manifest, steps, manifest, golden, unfired
):
    story = told_by(told(), steps)
    story.unfired = unfired
    guarantee, attempts, resumes = manifest
    manifest = make_manifest(guarantee, max_attempts=attempts, resumes=resumes)
    judgement = judge(story.trial(), scenario, manifest, golden)
    assert not [doubt for doubt in judgement.doubts if "crashed" in doubt]
    assert not (unfired and judgement.verdict is Verdict.PASS)
    for finding in judgement.findings:
        assert finding.message
        assert finding.requirement.partition("/")[0] == finding.promise
        assert all(0 <= seq <= story.seq or not story.events for seq in finding.events)


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(STEPS, max_size=15), golden=GOLDEN)
def test_a_saved_history_is_judged_like_the_one_it_was(
    told, scenario, make_manifest, steps, golden
):
    trial = told_by(told(), steps).trial()
    saved = tuple(from_line(to_line(event)) for event in trial.history)
    read = Trial(trial.name, trial.run_id, trial.schedule, saved, trial.unfired)
    manifest = make_manifest()
    one, other = (judge(t, scenario, manifest, golden) for t in (read, trial))
    assert one == other


STEP_OF = {
    "asked": ("ask", 0, [], None, False, True, {}),
    "delivered": ("deliver", "pay", None, {}),
    "applied": ("call", "pay", None, True, False, {}),
    "logged": ("line", {"event": "x"}, "stderr"),
    "fault": ("killed", "fault"),
    "life.continued": ("continued", 0),
    "life.started": ("start", "resume", None),
    "status.seen": ("status", None),
    "inspected": ("inspected", "end", None, None, None, ""),
    "leaked": ("leaked", PLACES[0]),
    "clock.leapt": ("leapt", 0.5),
    "run.ended": ("ended", "done", None),
}


def test_every_kind_of_event_is_among_them(told):
    """Else a check of a new kind would be put to no test here."""
    story = told_by(told(), STEP_OF.values())
    kinds = {get_args(each.model_fields["kind"].annotation)[0] for each in EVENTS}
    assert {event.kind for event in story.events} == kinds


def test_every_check_finds_something_among_them(told, scenario, make_manifest):
    """Else a check that nothing reaches would survive everything."""
    missed = set(CHECKS)

    @settings(max_examples=300, deadline=None, database=None, derandomize=True)
    @given(
        steps=st.lists(STEPS, min_size=8, max_size=40),
        golden=GOLDEN,
        last=st.none() | st.tuples(st.just("ended"), st.just("done"), FACTS),
    )
    def look(steps, golden, last):
        if not missed:
            return
        trial = told_by(told(), [*steps, last] if last else steps).trial()
        case = Case(trial, scenario, make_manifest(max_attempts=1), golden)
        missed.difference_update({p for p in missed if list(CHECKS[p](case))})

    look()
    assert not missed
