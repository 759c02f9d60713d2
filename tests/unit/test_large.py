"""Large texts in a view are made small, and tell worlds apart all the same."""

import json
import time

import pytest

from chaoskit.explore.fingerprint import Canon, learn
from chaoskit.explore.large import LARGE, LARGE_JSON, small
from chaoskit.explore.memory import remembered
from chaoskit.model.history import Logged
from chaoskit.model.manifest import LogNames

CANON = Canon(frozenset({"run-1", "run-2"}), 1_764_443_000.0)
BLOB = "0123456789abcdef-" * (LARGE // 10)


def mark(value, run="run-1"):
    return CANON.of_run(run).fingerprint(small({"redis": {"k": value}}, run))


def nested(text):
    return json.dumps({"blob": text, "n": 1})


@pytest.mark.parametrize("wrap", [str, nested, lambda text: {text: 1}])
def test_equal_texts_are_equal_and_different_ones_are_not(wrap):
    """Also where only random words tell them apart, which a short text may not."""
    assert mark(wrap(BLOB)) == mark(wrap(BLOB + "")) != mark(wrap(BLOB + "x"))
    assert mark(wrap(BLOB)) != mark(wrap(BLOB.replace("a", "b")))
    assert mark(wrap("x" + BLOB)) != mark(wrap("y" + BLOB)), "of one length"


@pytest.mark.parametrize("wrap", [str, nested])
def test_the_run_s_id_inside_is_neutral(wrap):
    def of(run):
        return mark(wrap(f"{BLOB} {run} {BLOB}"), run)

    assert of("run-1") == of("run-2") == of("run-77")
    assert of("run-1") != mark(wrap(f"{BLOB} run-9 {BLOB}"), "run-1")


def test_two_large_texts_that_change_places_are_another_world():
    assert mark(["x" + BLOB, "y" + BLOB]) != mark(["y" + BLOB, "x" + BLOB])


def test_large_json_of_small_texts_is_still_compared_by_fields():
    """A long conversation: its clocks and random ids mean nothing."""

    def saved(at, word):
        messages = [{"content": "hello " * 20}] * (LARGE // 100)
        return json.dumps({"messages": messages, "at": at, "id": word})

    one = saved(CANON.since, "9f86d081884c7d659a2feaa0")
    other = saved(CANON.since + 9, "a3c65c2974270fd093ee8a9b")
    assert LARGE < len(one) < LARGE_JSON
    assert mark(one) == mark(other)


def test_what_is_not_large_stays_as_it_is():
    view = {"redis": {"k": "x" * LARGE, "n": [1, None, True]}}
    assert small(view, "run-1") == view


@pytest.mark.parametrize(
    "text",
    [BLOB * 90, nested(BLOB * 90), json.dumps(list(range(10**6))), "[" * 10**6],
    ids=["text", "in JSON", "numbers", "no JSON"],
)
def test_a_look_at_ten_megabytes_is_small_and_soon_compared(text):
    view = small({"redis": {"k": text}}, "run-1")
    assert len(json.dumps(view)) < 1000
    began = time.process_time()
    learn([(view, view)] * 50, ("run-1", "run-2"), CANON.since)
    assert time.process_time() - began < 1


def test_json_of_any_depth():
    text = "[" * 300 + json.dumps(BLOB) + "]" * 300
    assert len(json.dumps(small(text, "run-1"))) < 1000


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ("at 12", "stored"),
        ("12", "stored"),
        ("at 112", "lost"),
        ("at 123", "lost"),
        ("v.12", "lost"),
    ],
)
def test_a_checkpoint_is_found_by_its_whole_number(stored, expected):
    entry = {"checkpoint_id": 12}
    logged = Logged(life=0, stream="stderr", line=1, entry=entry)
    found = remembered([logged], LogNames(), {"redis": [stored]})
    assert found["logged"] == expected
