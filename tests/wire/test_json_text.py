"""JSON from strangers: what the standard lacks is refused, all else kept exactly."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.model.history import Delivered, from_line, to_line
from chaoskit.wire.json_text import DEPTH_MAX, as_text, compact, holds, parse


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "Expecting value"),
        (b"{", "Expecting property name"),
        (b"\xff", "codec can't decode"),
        (b"\xef\xbb\xbf{}", "BOM"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1e999}', "Out of range"),
        (b'{"a": "\\ud800"}', "surrogates not allowed"),
        (b"[" * 100_000, "nested deeper"),
        (b"[" * 200 + b"]" * 200, "nested deeper"),
        (b'{"a": ' + b"9" * 5000 + b"}", "integer string conversion"),
    ],
)
def test_what_cannot_be_written_down_again_is_refused(body, why):
    with pytest.raises(ValueError, match=why):
        parse(body)


def test_nesting_up_to_the_limit_is_read_and_recorded():
    body = b"[" * DEPTH_MAX + b"]" * DEPTH_MAX
    event = Delivered(life=0, message=1, tool="t", args={"deep": parse(body)})
    assert from_line(to_line(event)) == event


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(deadline=None)
@given(JSON)
def test_whatever_is_read_can_be_recorded(value):
    try:
        read = parse(compact(value).encode())
    except ValueError:
        return
    event = Delivered(life=0, message=1, tool="t", args={"value": read})
    assert from_line(to_line(event)) == event


def test_strings_are_compared_as_themselves_and_all_else_as_compact_json():
    values = ["42", 42, 1.5, True, None, {"a": [1, "ü"]}]
    texts = ["42", "42", "1.5", "true", "null", '{"a":[1,"ü"]}']
    assert list(map(as_text, values)) == texts


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ({"a": 1, "more": 2}, {"a": 1.0}),
        ({"a": {"b": [1, {"c": 2, "d": 3}]}}, {"a": {"b": [1, {"c": 2}]}}),
        ({}, {"a": None}),
        ("text", "text"),
    ],
)
def test_what_was_added_takes_nothing_away(value, part):
    assert holds(value, part)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ({}, {"a": 1}),
        ({"a": "1"}, {"a": 1}),
        ({"a": True}, {"a": 1}),
        ({"a": [1, 2]}, {"a": [1]}),
        ({"a": [2, 1]}, {"a": [1, 2]}),
        ("{}", {}),
    ],
)
def test_what_is_gone_or_another_one_is_not_held(value, part):
    assert not holds(value, part)
