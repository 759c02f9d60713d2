"""Recorded traffic of redis-py passes the codec unchanged, however it is cut."""

import base64
import json
from pathlib import Path

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.wire.redis.replies import Replies
from chaoskit.wire.redis.requests import Commands

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("redis_py_*.jsonl"))


def _streams(recording: Path) -> dict[str, list[bytes]]:
    """Who spoke -> what was read of it, piece by piece."""
    said: dict[str, list[bytes]] = {}
    for line in recording.read_text().splitlines():
        entry = json.loads(line)
        said.setdefault(entry["who"], []).append(base64.b64decode(entry["bytes"]))
    return said


SAID = [
    pytest.param(who.split()[0], pieces, id=f"{path.stem}-{who}".replace(" ", "-"))
    for path in RECORDINGS
    for who, pieces in _streams(path).items()
]
WHOLE = {p.id: (p.values[0], b"".join(p.values[1])) for p in SAID}


def _commands(pieces: list[bytes]) -> list[bytes]:
    commands, taken = Commands(), []
    for piece in pieces:
        commands.feed(piece)
        taken += list(iter(commands.take, None))
    assert len(commands) == 0
    return [command.raw for command in taken]


def _messages(who: str, pieces: list[bytes]) -> list[bytes]:
    if who == "client":
        return _commands(pieces)
    replies = Replies()
    return [message for piece in pieces for message in replies.feed(piece)]


def test_there_are_recordings_of_both_protocols() -> None:
    assert [path.stem for path in RECORDINGS] == ["redis_py_resp2", "redis_py_resp3"]


@pytest.mark.parametrize(("who", "pieces"), SAID)
def test_recorded_traffic_passes_unchanged(who: str, pieces: list[bytes]) -> None:
    """By the byte, as it came, and whole: the same messages, and nothing is lost."""
    stream = b"".join(pieces)
    by_the_byte = [stream[at : at + 1] for at in range(len(stream))]
    messages = _messages(who, pieces)
    assert b"".join(messages) == stream
    assert _messages(who, by_the_byte) == messages == _messages(who, [stream])


@pytest.mark.parametrize(("who", "pieces"), SAID)
def test_each_message_is_one_to_another_parser_too(
    who: str, pieces: list[bytes]
) -> None:
    for message in _messages(who, pieces):
        reader = hiredis.Reader()
        reader.feed(message)
        reader.gets()
        assert not reader.has_data()


@given(st.sampled_from(sorted(WHOLE)), st.lists(st.integers(1, 400), max_size=30))
def test_recorded_traffic_may_be_cut_anywhere(name: str, sizes: list[int]) -> None:
    who, stream = WHOLE[name]
    pieces, at = [], 0
    for size in sizes:
        pieces.append(stream[at : at + size])
        at += size
    assert b"".join(_messages(who, [*pieces, stream[at:]])) == stream
