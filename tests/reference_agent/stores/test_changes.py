"""A change gives the new document exactly, costs what changed, and shows damage."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_agent.stores.changes import (
    apply,
    decode_event,
    difference,
    encode_event,
)

NAMES = st.sampled_from(["a", "b", "=", "in", "é", "\udfff"])
LEAVES = st.sampled_from(
    [None, True, False, 0, 1, 2**70, 0.0, -0.0, 1.0, "", "1", "\ud800", "ü\n"]
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(NAMES, VALUES)


def text(value: Any) -> str:
    """Equal texts: equal values of the same types, whatever the order of members."""
    return json.dumps(value, sort_keys=True)


@given(DOCUMENTS, DOCUMENTS)
def test_a_change_makes_the_new_document_of_the_old(old: Any, new: Any) -> None:
    kept = copy.deepcopy(old)
    number, event = decode_event(encode_event(7, difference(old, new)))
    assert (number, text(apply(old, event))) == (7, text(new))
    assert text(old) == text(kept)


@pytest.mark.parametrize(
    ("old", "new", "event"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": True}, {"in": {"a": {"=": True}}}),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, {"in": {"a": {"at": 2, "add": [3]}}}),
        ({"a": [1, 2, 3]}, {"a": [2, 3]}, {"in": {"a": {"cut": 1}}}),
        ({"a": [1, 3]}, {"a": [1, 2, 3]}, {"in": {"a": {"at": 1, "add": [2]}}}),
        ({"a": 1, "b": {}}, {"a": 1}, {"drop": ["b"]}),
        (
            {"m": [{"s": "ready", "x": "long"}, 5, 6]},
            {"m": [{"s": "done", "x": "long"}, 5, 6, 7]},
            {"in": {"m": {"in": {"0": {"in": {"s": {"=": "done"}}}}, "at": 3, "add": [7]}}},  # noqa: E501
        ),
    ],
)  # fmt: skip
def test_a_change_holds_only_what_changed(old: Any, new: Any, event: Any) -> None:
    assert difference(old, new) == event


def test_what_is_written_does_not_grow_with_the_document() -> None:
    def document(step: int) -> Any:
        messages = [{"role": "tool", "content": "x" * 100} for _ in range(step)]
        calls = {f"call-{each}": {"status": "done"} for each in range(step)}
        return {"step": step, "state": {"messages": messages, "calls": calls}}

    def size(step: int) -> int:
        return len(encode_event(step, difference(document(step), document(step + 1))))

    assert size(1000) < size(1) + 20 < 400


def test_deep_documents_change_too() -> None:
    old: Any = {}
    new: Any = {"a": 1}
    for _ in range(200):
        old, new = {"in": old}, {"in": new}
    assert apply(old, difference(old, new)) == new


def test_every_change_of_a_line_is_found() -> None:
    line = encode_event(12, {"in": {"a": {"=": "text"}}})
    assert line.isascii()
    assert "\n" not in line
    places = range(len(line))
    damaged = {line[:cut] for cut in places}
    for other in ("0", " ", "\n", "\x00", "é"):
        damaged |= {line[:place] + other + line[place + 1 :] for place in places}
    for each in damaged - {line}:
        with pytest.raises(ValueError, match=r"^it|^its"):
            decode_event(each)
    assert decode_event(line.encode())[0] == 12


@pytest.mark.parametrize("foreign", [b"", b"\xff\x00", "1", "{}", "null", "[]"])
def test_a_foreign_line_is_refused_in_words(foreign: Any) -> None:
    with pytest.raises(ValueError, match="does not end with a checksum"):
        decode_event(foreign)


def test_a_line_is_json_for_other_readers() -> None:
    told = json.loads(encode_event(3, {"=": {"a": "\ud800"}}))
    assert (told["number"], told["event"]) == (3, {"=": {"a": "\ud800"}})


@pytest.mark.parametrize(
    "event",
    [
        {"=": 5},
        {"in": {"gone": {"in": {"b": {"=": 1}}}}},
        {"in": {"list": {"at": 3, "add": [1]}}},
        {"in": {"list": {"in": {"9": {"=": 1}}}}},
        {"in": {"text": {"drop": ["x"]}}},
        {"in": 5},
    ],
)
def test_an_event_of_another_document_is_refused(event: Any) -> None:
    with pytest.raises(ValueError, match="the event"):
        apply({"list": [1, 2], "text": "abc"}, event)


def test_a_value_that_json_has_no_text_for_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_event(1, {"=": float("nan")})
