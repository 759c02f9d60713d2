"""What each Redis command means to the gate, and what changes it in a conversation."""

from typing import Any

import pytest

from chaoskit.wire.redis.commands import CommandTable, Kind
from chaoskit.wire.redis.dialogue import Dialogue, Step
from chaoskit.wire.redis.requests import Command


def _told(name: str, flags: str, first: int = 0, *rest: Any) -> list[Any]:
    """One entry of the reply to COMMAND, as RESP2 has it."""
    words = [flag.encode() for flag in flags.split()]
    return [name.encode(), -2, words, first, first, 1, [], [], *rest]


def _spec(begin: list[Any], keys: list[Any]) -> list[Any]:
    return [b"flags", [b"RW"], b"begin_search", begin, b"find_keys", keys]


AT_INDEX = [b"type", b"index", b"spec", [b"index", 2]]
AT_STREAMS = [
    b"type",
    b"keyword",
    b"spec",
    [b"keyword", b"STREAMS", b"startfrom", 4],
]
COUNTED = [
    b"type",
    b"keynum",
    b"spec",
    [b"keynumidx", 0, b"firstkey", 1, b"keystep", 1],
]
RANGE = [b"type", b"range", b"spec", [b"lastkey", -1, b"keystep", 1, b"limit", 2]]

REPLY = [
    _told("get", "readonly fast", 1),
    _told("set", "write denyoom", 1),
    _told("BITOP", "write", 2),
    _told("flushall", "write"),
    _told("ping", "fast"),
    _told("publish", "pubsub"),
    _told("subscribe", "pubsub"),
    _told("psubscribe", "pubsub"),
    _told("unsubscribe", "pubsub"),
    _told("monitor", "admin"),
    _told("multi", "fast"),
    _told("exec", ""),
    _told("discard", "fast"),
    _told("watch", "fast", 1),
    _told("reset", "fast"),
    _told("shutdown", "admin"),
    _told("wait", "blocking"),
    _told("blpop", "write blocking", 1),
    _told("eval", "noscript", 0, [_spec(AT_INDEX, COUNTED)], []),
    _told("eval_ro", "readonly noscript", 0, [_spec(AT_INDEX, COUNTED)], []),
    _told("xread", "readonly blocking", 0, [_spec(AT_STREAMS, RANGE)], []),
    _told("xreadgroup", "write blocking", 0, [_spec(AT_STREAMS, RANGE)], []),
    _told("client", "", 0, [], [_told("client|reply", ""), _told("client|id", "")]),
    _told("script", "", 0, [], [_told("script|load", "noscript")]),
    _told("xgroup", "", 0, [], [_told("xgroup|create", "write denyoom", 2)]),
]
# As a server before version 7 tells it: without key specifications and subcommands.
OLD_REPLY = [
    _told("evalsha", "noscript movablekeys")[:6],
    _told("xreadgroup", "write movablekeys")[:6],
    _told("xgroup", "write denyoom", 2)[:6],
    _told("blpop", "write noscript", 1)[:6],
    _told("client", "admin noscript")[:6],
    _told("script", "noscript")[:6],
]
TABLE = CommandTable(REPLY)


def _words(line: str) -> tuple[bytes, ...]:
    return tuple(word.encode() for word in line.split())


@pytest.mark.parametrize(
    ("line", "kind", "op", "key"),
    [
        ("SET k v", Kind.WRITE, "set", "k"),
        ("bitop AND dest a b", Kind.WRITE, "bitop", "dest"),
        ("FLUSHALL", Kind.WRITE, "flushall", None),
        ("SET", Kind.WRITE, "set", None),
        ("XGROUP CREATE s g $", Kind.WRITE, "xgroup|create", "s"),
        ("XGROUP HELP", Kind.PLAIN, "xgroup", None),
        ("GET k", Kind.PLAIN, "get", None),
        ("PUBLISH c hello", Kind.PLAIN, "publish", None),
        ("WATCH k", Kind.PLAIN, "watch", None),
        ("CLIENT ID", Kind.PLAIN, "client|id", None),
        ("NO.SUCH k", Kind.PLAIN, "no.such", None),
        ("CLIENT REPLY OFF", Kind.REFUSED, "client|reply", None),
        ("SHUTDOWN", Kind.REFUSED, "shutdown", None),
        ("EVAL script 2 a b", Kind.WRITE, "eval", "a"),
        ("EVAL script 0 a", Kind.WRITE, "eval", None),
        ("EVAL script 1", Kind.WRITE, "eval", None),
        ("EVAL script x a", Kind.WRITE, "eval", None),
        ("EVAL", Kind.WRITE, "eval", None),
        ("EVAL_RO script 1 a", Kind.PLAIN, "eval_ro", None),
        ("BLPOP a b 0", Kind.BLOCKING, "blpop", "a"),
        ("WAIT 1 0", Kind.BLOCKING, "wait", None),
        ("XREAD BLOCK 0 STREAMS s 0", Kind.BLOCKING, "xread", None),
        ("XREAD STREAMS block 0", Kind.PLAIN, "xread", None),
        (
            "XREADGROUP GROUP g c BLOCK 0 STREAMS s >",
            Kind.BLOCKING,
            "xreadgroup",
            "s",
        ),
        (
            "XREADGROUP GROUP block c COUNT 1 STREAMS s >",
            Kind.WRITE,
            "xreadgroup",
            "s",
        ),
    ],
)
def test_kind_and_operation(line: str, kind: Kind, op: str, key: str | None) -> None:
    meaning = TABLE.meaning(_words(line))
    assert (meaning.kind, meaning.op, meaning.key) == (kind, op, key)


@pytest.mark.parametrize(
    ("line", "kind", "op", "key"),
    [
        ("EVALSHA sha 1 a", Kind.WRITE, "evalsha", "a"),
        ("XREADGROUP GROUP g c STREAMS s >", Kind.WRITE, "xreadgroup", "s"),
        ("XREADGROUP GROUP g c BLOCK 0 STREAMS s >", Kind.BLOCKING, "xreadgroup", "s"),
        ("XGROUP CREATE s g $", Kind.WRITE, "xgroup", "s"),
        ("BLPOP l 0", Kind.BLOCKING, "blpop", "l"),
        ("CLIENT REPLY OFF", Kind.REFUSED, "client|reply", None),
        ("SCRIPT LOAD body", Kind.PLAIN, "script|load", None),
    ],
)
def test_a_server_before_version_7_is_understood(
    line: str, kind: Kind, op: str, key: str | None
) -> None:
    meaning = CommandTable(OLD_REPLY).meaning(_words(line))
    assert (meaning.kind, meaning.op, meaning.key) == (kind, op, key)


def test_a_key_that_is_no_text_is_shown_with_escapes() -> None:
    assert TABLE.meaning((b"SET", b"k\xff\xc3\xa4", b"v")).key == "k\\xffä"


def test_scripts_that_the_server_learns_are_noticed() -> None:
    assert TABLE.meaning(_words("EVAL script 0")).script == b"script"
    assert TABLE.meaning(_words("script load body")).script == b"body"
    assert TABLE.meaning(_words("SCRIPT LOAD")).script is None
    assert TABLE.meaning(_words("SET script load")).script is None


class Talk:
    """A conversation in which the server accepts everything."""

    def __init__(self) -> None:
        self.dialogue = Dialogue(TABLE)

    def say(self, line: str, reply: bytes = b"+OK\r\n") -> Step:
        step = self.dialogue.read(Command(_words(line), line.encode()))
        self.dialogue.answered(step, reply)
        return step


def test_a_transaction_is_one_write_with_the_key_of_its_first_write() -> None:
    talk = Talk()
    kinds = [talk.say(line).kind for line in ("MULTI", "GET r", "SET a 1", "BLPOP b 0")]
    assert kinds == [Kind.MULTI, Kind.PLAIN, Kind.PLAIN, Kind.PLAIN]
    done = talk.say("EXEC").meaning
    assert (done.kind, done.op, done.key) == (Kind.WRITE, "exec", "a")
    assert talk.say("SET c 1").kind is Kind.WRITE


def test_a_blocking_write_does_not_block_in_a_transaction_and_is_a_write() -> None:
    talk = Talk()
    talk.say("MULTI")
    talk.say("BLPOP b 0")
    assert talk.say("EXEC").meaning.key == "b"


@pytest.mark.parametrize("end", ["EXEC", "DISCARD", "RESET"])
def test_no_write_is_counted_where_none_is_done(end: str) -> None:
    talk = Talk()
    talk.say("MULTI")
    talk.say("GET a" if end == "EXEC" else "SET a 1")
    assert talk.say(end).kind is not Kind.WRITE
    assert talk.say("EXEC").kind is Kind.PLAIN
    assert talk.say("SET a 1").kind is Kind.WRITE


def test_a_transaction_that_was_not_accepted_queues_nothing() -> None:
    talk = Talk()
    talk.say("MULTI x", b"-ERR wrong number of arguments\r\n")
    assert talk.say("SET a 1").kind is Kind.WRITE


def test_a_second_transaction_does_not_remember_the_first() -> None:
    talk = Talk()
    for line in ("MULTI", "SET a 1", "EXEC", "MULTI", "GET b"):
        talk.say(line)
    assert talk.say("EXEC").kind is Kind.PLAIN


def test_what_cannot_be_followed_in_a_transaction_is_refused() -> None:
    talk = Talk()
    talk.say("MULTI")
    for line in ("SUBSCRIBE c", "MONITOR", "CLIENT REPLY OFF"):
        step = talk.say(line)
        assert step.kind is Kind.REFUSED
        assert step.meaning.why


def _confirmation(verb: bytes, channel: bytes, left: int, first: bytes = b"*") -> bytes:
    name = b"$%d\r\n%b\r\n" % (len(verb), verb)
    return b"%b3\r\n%b$%d\r\n%b\r\n:%d\r\n" % (
        first,
        name,
        len(channel),
        channel,
        left,
    )


MESSAGE = b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n"
PONG = b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"


def test_each_channel_is_confirmed_and_messages_come_between() -> None:
    talk = Talk()
    step = talk.say("SUBSCRIBE a b", _confirmation(b"subscribe", b"b", 2))
    assert step.replies == 2
    assert talk.dialogue.answers(step, _confirmation(b"subscribe", b"a", 1))
    assert not talk.dialogue.answers(step, MESSAGE)
    assert talk.dialogue.answers(step, b"-NOPERM no\r\n")
    assert talk.say("PSUBSCRIBE p").replies == 1
    assert talk.say("UNSUBSCRIBE").replies == 2
    assert talk.say("UNSUBSCRIBE").replies == 1
    assert talk.say("UNSUBSCRIBE a b c").replies == 3


def test_published_arrays_are_no_replies_in_resp2_while_subscribed() -> None:
    talk = Talk()
    ping = talk.say("PING")
    assert talk.dialogue.answers(ping, MESSAGE), "a reply may look like that"
    talk.say("SUBSCRIBE a", _confirmation(b"subscribe", b"a", 1))
    assert not talk.dialogue.answers(ping, MESSAGE)
    assert talk.dialogue.answers(ping, PONG)
    talk.say("UNSUBSCRIBE", _confirmation(b"unsubscribe", b"a", 0))
    assert talk.dialogue.answers(ping, MESSAGE)


def test_in_resp3_only_push_messages_are_pushed() -> None:
    talk = Talk()
    confirmation = _confirmation(b"subscribe", b"a", 1, b">")
    step = talk.say("SUBSCRIBE a", confirmation)
    assert talk.dialogue.answers(step, confirmation)
    ping = talk.say("PING")
    assert talk.dialogue.answers(ping, MESSAGE)
    assert not talk.dialogue.answers(ping, b">" + MESSAGE[1:])


def test_a_monitor_answers_nothing_but_its_end() -> None:
    talk = Talk()
    assert talk.say("MONITOR").replies == 1
    assert talk.say("SET a 1").replies == 0
    reset = talk.dialogue.read(Command((b"RESET",), b"RESET"))
    assert not talk.dialogue.answers(reset, b"+1 [0 unix:] SET a 1\r\n")
    assert talk.dialogue.answers(reset, b"+RESET\r\n")
    talk.dialogue.answered(reset, b"+RESET\r\n")
    assert talk.say("SET a 1").kind is Kind.WRITE


def test_a_monitor_that_was_refused_changes_nothing() -> None:
    talk = Talk()
    talk.say("MONITOR", b"-NOPERM no\r\n")
    assert talk.say("SET a 1").kind is Kind.WRITE


def _whole(*lines: str, talk: Talk | None = None) -> Step | None:
    commands = [Command(_words(line), f"<{line}>".encode()) for line in lines]
    return (talk or Talk()).dialogue.whole(commands[0], commands[1:])


def test_a_transaction_that_arrived_whole_is_one_step() -> None:
    step = _whole("MULTI", "GET a", "SET b 1", "DEL c", "EXEC")
    assert step is not None
    assert (step.kind, step.meaning.op, step.meaning.key) == (Kind.WRITE, "exec", "b")
    assert step.raw == b"<MULTI><GET a><SET b 1><DEL c><EXEC>"
    assert step.opening == b"<MULTI><GET a><SET b 1><DEL c>"
    assert step.replies == 5


def test_a_whole_transaction_without_writes_is_not_counted() -> None:
    step = _whole("multi", "GET a", "exec")
    assert step is not None
    assert (step.kind, step.replies) == (Kind.PLAIN, 3)


@pytest.mark.parametrize(
    "lines",
    [
        ("MULTI",),
        ("MULTI", "SET a 1"),
        ("MULTI x", "SET a 1", "EXEC"),
        ("MULTI", "SET a 1", "EXEC x"),
        ("MULTI", "SET a 1", "DISCARD"),
        ("MULTI", "MULTI", "EXEC"),
        ("MULTI", "SUBSCRIBE c", "EXEC"),
        ("MULTI", "CLIENT REPLY OFF", "EXEC"),
        ("MULTI", "RESET", "EXEC"),
        ("MULTI", "EVAL script 0", "EXEC"),
    ],
)
def test_what_may_go_another_way_is_read_command_by_command(
    lines: tuple[str, ...],
) -> None:
    """A refusal in the middle, or a script that the server would know from there on."""
    assert _whole(*lines) is None


def test_who_is_subscribed_is_read_command_by_command() -> None:
    talk = Talk()
    talk.say("SUBSCRIBE a", _confirmation(b"subscribe", b"a", 1))
    assert _whole("MULTI", "SET a 1", "EXEC", talk=talk) is None
