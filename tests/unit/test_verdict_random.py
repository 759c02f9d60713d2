"""Random histories: no check may raise on any of them, nor pass what proves nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.checks import judge
from chaoskit.model.history import from_line, to_line
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
EVENTS = st.sampled_from(["run.start", "run.end", "tool.intent", "tool.result", "", 3])
LINES = st.dictionaries(NAMES, JSON, max_size=7) | st.builds(
    lambda event, entry: {"run_id": "run-0a1b2c3d", "step": 1, **entry, "event": event},
    EVENTS,
    st.dictionaries(NAMES, JSON, max_size=4),
)
FAULT = Fault.parse("kill@0:tools.pay[o-1]#7:before")

STEPS = st.one_of(
    st.tuples(
        st.just("ask"),
        TURNS,
        CARRIED,
        st.sampled_from([None, "refused"]),
        st.booleans(),
        st.booleans(),
    ),
    st.tuples(st.just("deliver"), TOOLS, KEYS, ARGS),
    st.tuples(st.just("call"), TOOLS, KEYS, st.booleans(), st.booleans(), ARGS),
    st.tuples(st.just("line"), LINES, st.sampled_from(["stderr", "stdout"])),
    st.tuples(st.just("after"), st.floats(0, 100)),
    st.tuples(
        st.just("start"), st.sampled_from(["start", "resume", "answer", "again"])
    ),
    st.tuples(st.just("killed"), st.sampled_from(["fault", "restored", "cut"])),
    st.tuples(
        st.just("end"),
        st.sampled_from(["done", "parked", "failed", "died"]),
        st.sampled_from(["itself", "fault", "limit", "cut"]),
    ),
    st.tuples(
        st.just("over"),
        st.sampled_from(["done", "parked", "failed", "endless", "cut"]),
    ),
)


def tell(story, step):
    """One random event, or a few that belong together."""
    match step:
        case ("ask", turn, carried, problem, past_end, reply):
            story.ask(turn, *carried, problem=problem, past_end=past_end, reply=reply)
        case ("deliver", tool, key, args):
            story.deliver(tool, key, **args)
        case ("call", tool, key, first, late, args):
            story.call(tool, key, first=first, late=late, **args)
        case ("killed", cause):
            story.killed_at() if story.last is None else story.killed(cause=cause)
        case (name, *rest):
            getattr(story, name)(*rest)


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
)


@settings(max_examples=300, deadline=None)
@given(
    steps=st.lists(STEPS, max_size=25),
    manifest=MANIFESTS,
    unfired=st.sampled_from([(), (FAULT,)]),
)
def test_no_history_makes_a_check_raise(
    told, scenario, make_manifest, steps, manifest, unfired
):
    story = told()
    for step in steps:
        tell(story, step)
    story.unfired = unfired
    guarantee, attempts = manifest
    manifest = make_manifest(guarantee, max_attempts=attempts)
    judgement = judge(story.trial(), scenario, manifest)
    assert not [doubt for doubt in judgement.doubts if "crashed" in doubt]
    assert not (unfired and judgement.verdict is Verdict.PASS)
    for finding in judgement.findings:
        assert finding.message
        assert finding.requirement.partition("/")[0] == finding.promise
        assert all(0 <= seq <= story.seq or not story.events for seq in finding.events)


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(STEPS, max_size=15))
def test_a_saved_history_is_judged_like_the_one_it_was(
    told, scenario, make_manifest, steps
):
    story = told()
    for step in steps:
        tell(story, step)
    trial = story.trial()
    saved = tuple(from_line(to_line(event)) for event in trial.history)
    read = Trial(trial.name, trial.run_id, trial.schedule, saved, trial.unfired)
    manifest = make_manifest()
    assert judge(read, scenario, manifest) == judge(trial, scenario, manifest)
