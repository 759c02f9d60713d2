"""Server-sent events: a byte at a time they are what they are whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.wire.sse import Event, Reader, event

PIECES = st.sampled_from(
    [
        *("data: x\n", "data:y\r\n", "data\r", "event: e\n", "id: 7\n", ": ping\n"),
        *("\n", "\r\n", "\r", "retry: 5\n", "data: ü €\n", "data:  two\n", "no end"),
    ]
)


def _by_bytes(stream):
    reader = Reader()
    return [found for byte in stream for found in reader.feed(bytes([byte]))]


@given(st.lists(PIECES, max_size=12))
def test_fed_a_byte_at_a_time_it_gives_what_it_gives_fed_whole(parts):
    stream = "".join(parts).encode()
    whole = list(Reader().feed(stream + b"\n\n"))
    assert _by_bytes(stream + b"\n\n") == whole


@given(
    st.text(
        alphabet=st.characters(codec="utf-8", exclude_characters="\r"), max_size=30
    ),
    st.sampled_from(["", "response.created"]),
)
def test_what_is_written_is_read_back(data, name):
    assert list(Reader().feed(event(data, name))) == [Event(data, name)]


def test_data_that_is_no_text_is_json():
    assert event({"a": [1, None]}) == b'data: {"a":[1,null]}\n\n'
    assert event("[DONE]") == b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [Event("a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event("a")]),
        (b"data: a\ndata: b\n\n", [Event("a\nb")]),
        (b"data: cut", []),
        (b"data: a\n", []),
        (b"event: e\n\ndata: a\n\n", [Event("a")]),
        (
            b"id: 1\nevent: e\ndata: a\n\ndata: b\n\n",
            [Event("a", "e", "1"), Event("b", "", "1")],
        ),
        (b": only a comment\n\n", []),
        (b"data\n\n", [Event("")]),
        (b"data: a\r\rdata: b\r\n\r\n", [Event("a"), Event("b")]),
    ],
)
def test_events_end_at_an_empty_line_as_the_standard_has_it(stream, expected):
    assert list(Reader().feed(stream)) == expected
    assert _by_bytes(stream) == expected
