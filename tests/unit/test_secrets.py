"""`secrets`: each place that held the canary is a finding; what holds it is known."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.checks import judge
from chaoskit.gate import BLOT, Blots, Recorder
from chaoskit.model.history import Delivered, Leaked, Logged
from chaoskit.trial.leaks import places
from chaoskit.world.llm import CANARY

PAY = {"order": "o-1"}
BLOTS = Blots({CANARY: BLOT})


@pytest.fixture
def found(make_scenario, make_manifest):
    """What `secrets` says of a story, in short."""

    def check(story):
        scenario = make_scenario(
            [("pay", PAY)], tools={"pay": "keyed"}, promises=["secrets"]
        )
        judgement = judge(story.trial(), scenario, make_manifest())
        return [(f.requirement, f.subject) for f in judgement.findings]

    return check


@pytest.fixture
def run(told):
    return told().ask(0).call("pay", "k", **PAY).ask(1, "0.0")


def test_a_run_that_let_nothing_out_is_right(found, run):
    assert found(run.done()) == []


@pytest.mark.parametrize(
    ("where", "requirement"),
    [
        ("standard error", "secrets/not-in-log"),
        ("standard output", "secrets/not-in-log"),
        ("a call of pay", "secrets/not-in-calls"),
        ("redis key agent:{run}", "secrets/not-in-store"),
        ("file agent.db", "secrets/not-in-store"),
        ("table runs", "secrets/not-in-store"),
    ],
)
def test_a_place_is_told_by_what_it_is(found, run, where, requirement):
    run.add(Leaked(life=0, where=where))
    assert found(run.done()) == [(requirement, where)]


def test_two_places_are_two_findings_and_one_place_is_one(found, run):
    for where in ("standard error", "table runs", "table runs"):
        run.add(Leaked(life=0, where=where))
    assert len(found(run.done())) == 2


# --- how it is recognised -------------------------------------------------------------


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_it_is_known_in_base64_wherever_it_begins(before, after):
    """And nothing of it stays but what its neighbours decide."""
    data = before + CANARY.encode() + after
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(data).decode()
        blotted = BLOTS.text(text)
        assert BLOT in blotted
        assert len(blotted) < len(text) - len(CANARY)


@given(st.text())
def test_a_text_without_it_stays_the_same_object(text):
    assert BLOTS.text(text) is text


def test_a_secret_within_another_one_leaves_no_half_of_it():
    blots = Blots({"abcdef-abcdef": "[A]", "abcdef-abcdef-ghi": "[B]"})
    assert blots.text("x abcdef-abcdef-ghi y") == "x [B] y"
    assert blots.data(b"abcdef-abcdef-ghi") == b"[B]"


def test_the_recorder_writes_none_and_tells_a_call_once():
    """What is kept in memory is what was written."""
    lines = []
    sink = type("Sink", (), {"write": staticmethod(lines.append)})()
    record = Recorder(sink, blots=BLOTS)
    for _ in range(2):
        record(Delivered(life=0, message=1, tool="pay", args={"note": CANARY}))
    record(Logged(life=0, stream="stderr", line=1, entry={"event": CANARY}))
    assert CANARY not in "".join(lines)
    leaks = [e.where for e in record.events if isinstance(e, Leaked)]
    assert leaks == ["a call of pay"]
    assert record.events[0].args == {"note": BLOT}
    assert [event.seq for event in record.events] == [0, 1, 2, 3]


def test_an_argument_that_only_looks_blotted_is_no_leak():
    record = Recorder(blots=BLOTS)
    record(Delivered(life=0, message=1, tool="pay", args={"note": BLOT}))
    assert len(record.events) == 1


BINARY = base64.b64encode(b"\xff" + CANARY.encode()).decode()


@pytest.mark.parametrize(
    ("view", "where"),
    [
        ({"redis": {"0": {"k": {"value": [CANARY]}}}}, "redis key k"),
        ({"redis": {"3": {"k": {"value": {CANARY: "x"}}}}}, "redis key k of 3"),
        ({"redis": {"0": {"k": {"value": f"base64:{BINARY}"}}}}, "redis key k"),
        ({"files": {"now": {"a/b": {"base64": BINARY}}}}, "file a/b"),
        (
            {"postgres": {"tables": {"t": {"1": {"key": CANARY}}}, "schema": []}},
            "table t",
        ),
        (
            {"postgres": {"tables": {"t": [{"b": f"\\x{CANARY.encode().hex()}"}]}}},
            "table t",
        ),
    ],
)
def test_a_store_is_searched_by_what_it_shows(view, where):
    view.get("postgres", {}).setdefault("schema", [])
    assert list(places(view)) == [where]


def test_what_is_no_store_is_not_searched():
    """The effects of a call are told by the call itself."""
    assert list(places({"tools": {"pay": [CANARY]}, "memory": CANARY})) == []
    assert list(places({"redis": {"0": {"k": {"value": "base64:x"}}}})) == []
