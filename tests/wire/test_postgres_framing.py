"""Messages of PostgreSQL are cut at their edges, however the bytes arrive."""

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.wire.postgres.dialogue import Dialogue
from chaoskit.wire.postgres.framing import (
    MESSAGE_BYTES_MAX,
    Opening,
    Replies,
    Requests,
    WireError,
    error,
    message,
    ready,
)
from chaoskit.wire.postgres.sql import Classifier
from chaoskit.wire.postgres.steps import Answer

RECORDED = Path(__file__).parent / "recordings" / "postgres.json"
STREAMS = [
    (client, *(base64.b64decode(side) for side in both))
    for client, connections in json.loads(RECORDED.read_text()).items()
    for both in connections
]
TAG = st.sampled_from([bytes([tag]) for tag in b"123ACDEGHIKNRSTVZcdnst"])
MESSAGE = st.builds(message, TAG, st.binary(max_size=30))
OPENING = st.builds(
    lambda body: (8 + len(body)).to_bytes(4, "big") + b"\0\3\0\0" + body,
    st.binary(max_size=30),
)


def _each(pieces):
    """Single messages: those that came in a row are one piece where they are rows."""
    return [each for piece in pieces for each in _taken(piece)]


def _taken(data):
    requests = Requests()
    requests.feed(data)
    return list(iter(requests.take, None))


@given(st.lists(MESSAGE, max_size=8))
def test_replies_fed_whole_are_cut_where_they_were_joined(replies):
    fed = Replies().feed(b"".join(replies))
    assert _each(fed) == replies
    assert all(len(_taken(piece)) == 1 or piece[:1] in b"Dd" for piece in fed)


@given(st.lists(MESSAGE, max_size=8))
def test_replies_fed_by_the_byte_are_the_same(replies):
    cutter, got = Replies(), []
    for byte in b"".join(replies):
        got += cutter.feed(bytes([byte]))
    assert got == replies


@given(OPENING, st.lists(MESSAGE, max_size=8), st.integers(1, 40))
def test_requests_fed_in_pieces_are_those_fed_whole(opening, sent, size):
    data, requests, got = opening + b"".join(sent), Requests(), []
    for at in range(0, len(data), size):
        requests.feed(data[at : at + size])
        if not got:
            got += [p for p in [requests.opening()] if p is not None]
        if got:
            got += iter(requests.take, None)
    assert [got[0].raw, *got[1:]] == [opening, *sent]
    assert len(requests) == 0


@pytest.mark.parametrize("size", [0, 3, MESSAGE_BYTES_MAX + 1])
def test_a_length_that_cannot_be_is_refused(size):
    requests = Requests()
    requests.feed(b"Q" + size.to_bytes(4, "big"))
    with pytest.raises(WireError, match=f"{size} bytes"):
        requests.take()


@given(st.binary(max_size=60))
def test_whatever_comes_is_cut_or_refused(data):
    for take in ("opening", "take"):
        requests = Requests()
        requests.feed(data)
        try:
            while (got := getattr(requests, take)()) is not None:
                assert getattr(got, "raw", got) in data
        except WireError:
            pass


def test_a_start_up_packet_is_read():
    packet = Opening(3 << 16, b"\0" * 8 + b"user\0me\0database\0db\0\0")
    assert packet.parameters == {"user": "me", "database": "db"}


def test_an_error_is_what_clients_read():
    fields = error("ERROR", "40001", "why")[5:].split(b"\0")
    assert fields == [b"SERROR", b"VERROR", b"C40001", b"Mwhy", b"", b""]
    assert ready(b"I") == b"Z\0\0\0\5I"


@pytest.mark.parametrize(("client", "sent", "told"), STREAMS)
def test_recorded_traffic_passes_unchanged(client, sent, told):
    """Whole, and byte by byte."""
    whole, single = _cut(sent, len(sent)), _cut(sent, 1)
    assert b"".join(whole) == sent
    assert whole == single
    bare = told.removeprefix(b"N").removeprefix(b"N")
    cutter, got = Replies(), []
    for at in range(len(bare)):
        got += cutter.feed(bare[at : at + 1])
    assert b"".join(got) == bare
    assert _each(Replies().feed(bare)) == got


def _cut(sent, size):
    requests, got, has_begun = Requests(), [], False
    for at in range(0, len(sent), size):
        requests.feed(sent[at : at + size])
        while not has_begun and (packet := requests.opening()) is not None:
            got.append(packet.raw)
            has_begun = packet.code == 3 << 16
        if has_begun:
            got += iter(requests.take, None)
    return got


@pytest.mark.parametrize(("client", "sent", "told"), STREAMS)
def test_recorded_conversations_are_followed(client, sent, told):
    """Step for step, what is sent on is what the client sent, and all is answered."""
    requests, replies = Requests(), Replies().feed(told.lstrip(b"N"))
    requests.feed(sent)
    while requests.opening().code != 3 << 16:
        pass
    dialogue, passed, began = Dialogue(Classifier()), [], len(sent) - len(requests)
    labels = set()
    while replies.pop(0)[:1] != b"Z":
        pass
    for each in iter(requests.take, None):
        step = dialogue.read(each)
        if step is None:
            continue
        labels.add(step.label)
        part = step.work if step.label is None else step.whole
        part = part if part.raw else step.commit
        passed.append(part.raw)
        if part.until.readies or part.until.completions:
            dialogue.answered(_answered(part, replies))
    assert b"".join(passed) == sent[began:]
    assert replies == []
    assert {("create_table", "t"), ("insert", "t"), ("copy", "t")} <= labels


def _answered(part, replies):
    answer = Answer(part.until)
    while True:
        reply = replies.pop(0)
        if reply[:1] not in b"A" and answer.take(reply):
            return answer
