"""Commands and replies are cut at their edges, however the bytes arrive."""

from typing import Any

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.wire.redis.replies import Replies
from chaoskit.wire.redis.requests import LINE_BYTES_MAX, Command, Commands
from chaoskit.wire.redis.resp import WireError

WORDS = st.lists(st.binary(max_size=20), min_size=1, max_size=5)
LINE = st.text(st.characters(codec="ascii", exclude_characters="\r\n"), max_size=10)


def _bulk(kind: bytes, value: bytes) -> bytes:
    return b"%b%d\r\n%b\r\n" % (kind, len(value), value)


def _verbatim(text: bytes) -> bytes:
    return _bulk(b"=", b"txt:" + text)


def _aggregate(kind: bytes, width: int, items: list[bytes]) -> bytes:
    whole = items[: len(items) // width * width]
    return b"%b%d\r\n%b" % (kind, len(whole) // width, b"".join(whole))


SCALARS = st.one_of(
    LINE.map(lambda text: b"+%b\r\n" % text.encode()),
    LINE.map(lambda text: b"-ERR %b\r\n" % text.encode()),
    st.integers().map(lambda n: b":%d\r\n" % n),
    st.integers().map(lambda n: b"(%d\r\n" % n),
    st.floats().map(lambda n: b",%b\r\n" % str(n).encode()),
    st.sampled_from([b"$-1\r\n", b"*-1\r\n", b"_\r\n", b"#t\r\n", b"#f\r\n"]),
    st.binary(max_size=20).map(lambda value: _bulk(b"$", value)),
    st.binary(max_size=20).map(lambda value: _bulk(b"!", value)),
    st.binary(max_size=20).map(_verbatim),
)


def _nested(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    some = st.lists(inner, max_size=5)
    return st.one_of(
        some.map(lambda items: _aggregate(b"*", 1, items)),
        some.map(lambda items: _aggregate(b"~", 1, items)),
        some.map(lambda items: _aggregate(b"%", 2, items)),
        st.tuples(some, inner).map(lambda p: _aggregate(b"|", 2, p[0]) + p[1]),
    )


REPLY = st.recursive(SCALARS, _nested, max_leaves=12)
PUSH = st.lists(REPLY, min_size=1, max_size=4).map(lambda i: _aggregate(b">", 1, i))
STREAM = st.lists(REPLY | PUSH, max_size=5)


def _taken(commands: Commands) -> list[Command]:
    return list(iter(commands.take, None))


@given(STREAM)
def test_replies_fed_whole_are_cut_where_they_were_joined(replies: list[bytes]) -> None:
    assert Replies().feed(b"".join(replies)) == replies


@given(STREAM)
def test_replies_fed_by_the_byte_are_the_same(replies: list[bytes]) -> None:
    cutter, got = Replies(), []
    for byte in b"".join(replies):
        got += cutter.feed(bytes([byte]))
    assert got == replies


@given(st.lists(WORDS, max_size=5), st.integers(1, 30))
def test_commands_fed_in_pieces_are_those_fed_whole(
    sent: list[list[bytes]], size: int
) -> None:
    packed = [hiredis.pack_command(tuple[Any, ...](words)) for words in sent]
    expected = [
        Command(tuple(words), raw) for words, raw in zip(sent, packed, strict=True)
    ]
    stream = b"".join(packed)
    whole, pieces, got = Commands(), Commands(), []
    whole.feed(stream)
    for at in range(0, len(stream), size):
        pieces.feed(stream[at : at + size])
        got += _taken(pieces)
    assert _taken(whole) == expected
    assert got == expected
    assert len(pieces) == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"PING\r\n", [b"PING"]),
        (b"  set  k\tv \n", [b"set", b"k", b"v"]),
        (b'SET k "a b\\x41\\n\\"" \r\n', [b"SET", b"k", b'a bA\n"']),
        (b"SET k 'it\\'s \\n' \r\n", [b"SET", b"k", b"it's \\n"]),
        (b'SET k ""\r\n', [b"SET", b"k", b""]),
    ],
)
def test_inline_commands_are_split_as_a_server_splits_them(
    line: bytes, words: list[bytes]
) -> None:
    commands = Commands()
    for byte in line + b"PING\r\n":
        commands.feed(bytes([byte]))
    assert _taken(commands) == [
        Command(tuple(words), line),
        Command((b"PING",), b"PING\r\n"),
    ]


def test_commands_without_a_word_are_skipped() -> None:
    """A server does not answer them, so that a relay must not wait for a reply."""
    commands = Commands()
    commands.feed(b"\r\n*0\r\n*-1\r\n \r\nPING\r\n")
    assert [c.words for c in _taken(commands)] == [(b"PING",)]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"*x\r\n", "invalid multibulk length"),
        (b"*1048577\r\n", "invalid multibulk length"),
        (b"*1\r\n:1\r\n", "expected '$', got ':'"),
        (b"*1\r\n\r\n", "expected '$', got ''"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b'SET k "a\r\n', "unbalanced quotes in request"),
        (b'SET k "a"b\r\n', "unbalanced quotes in request"),
        (b"x" * (LINE_BYTES_MAX + 1), "too big inline request"),
        (b"*1\r\n$" + b"1" * (LINE_BYTES_MAX + 1), "too big count string"),
    ],
)
def test_what_is_no_command_is_refused_after_those_before_it(
    sent: bytes, said: str
) -> None:
    commands = Commands()
    commands.feed(b"PING\r\n" + sent)
    assert commands.take() == Command((b"PING",), b"PING\r\n")
    for _ in range(2):
        with pytest.raises(WireError) as problem:
            commands.take()
        assert str(problem.value) == said
        commands.feed(b"PING\r\n")


@pytest.mark.parametrize("sent", [b"HTTP/1.1 400\r\n", b"$x\r\n", b"*?\r\n"])
def test_what_is_no_reply_is_refused(sent: bytes) -> None:
    with pytest.raises(WireError):
        Replies().feed(sent)


@given(st.binary(max_size=60))
def test_any_bytes_give_commands_or_an_error(data: bytes) -> None:
    """The relay must not fall over whatever an agent sends."""
    commands = Commands()
    commands.feed(data)
    try:
        _taken(commands)
    except WireError:
        return
    assert len(commands) <= len(data)


def test_a_large_value_costs_no_more_than_its_size(monkeypatch: Any) -> None:
    """While it arrives piece by piece, what is there already is not read again."""
    looked_at = 0

    class Counting(bytearray):
        def find(self, *args: Any) -> int:
            nonlocal looked_at
            found = super().find(*args)
            looked_at += found - args[1]
            return found

    commands = Commands()
    monkeypatch.setattr(commands, "_buffer", Counting())
    commands.feed(b"*1\r\n$1000000\r\n")
    for _ in range(100):
        assert commands.take() is None
        commands.feed(b"\n" * 10_000)
    commands.feed(b"\r\n")
    assert commands.take() is not None
    assert looked_at < 2000
