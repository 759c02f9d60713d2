"""What a Redis command means to the gate, told from the server's own command table.

Crossings, with the operations of service ``redis``:

- every command that the server flags as a write, and every script or function that is
  not declared read-only (``eval``, ``fcall``): op is the full name in lower case
  (``set``, ``xgroup|create``), key its first key;
- a transaction that queued such a command: op ``exec``, key that of the first of them.
  What is queued inside it is not counted, and nor is a transaction without writes.

All else passes uncounted: reads, connection set-up, blocking commands, pub/sub. A
command's edges are ``before`` (nothing applied) and ``after`` (the reply withheld).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from chaoskit.wire.redis.keys import KeyFinder, Words, finders


class Kind(Enum):
    """What a relay has to do with a command."""

    PLAIN = "pass it; the next reply is its own"
    WRITE = "take it through the gate"
    BLOCKING = "pass it; its reply may take forever, so hold nothing up"
    SUBSCRIBE = "pass it; each channel is confirmed, and messages may come at any time"
    MONITOR = "pass it; from its reply on the server talks by itself"
    MULTI = "pass it; if accepted, what follows is queued"
    EXEC = "what was queued is done"
    DISCARD = "what was queued is forgotten"
    RESET = "pass it; all state of the connection is gone"
    REFUSED = "answer an error; it would work against the relay or the harness"


_BY_NAME: Mapping[bytes, Kind] = {
    b"multi": Kind.MULTI,
    b"exec": Kind.EXEC,
    b"discard": Kind.DISCARD,
    b"reset": Kind.RESET,
    b"monitor": Kind.MONITOR,
    b"subscribe": Kind.SUBSCRIBE,
    b"psubscribe": Kind.SUBSCRIBE,
    b"ssubscribe": Kind.SUBSCRIBE,
    b"unsubscribe": Kind.SUBSCRIBE,
    b"punsubscribe": Kind.SUBSCRIBE,
    b"sunsubscribe": Kind.SUBSCRIBE,
    # The server cannot know what a script will do, so it does not flag them.
    b"eval": Kind.WRITE,
    b"evalsha": Kind.WRITE,
    b"fcall": Kind.WRITE,
}
_ENDS_SERVER = "it would take the server away from the harness"
_LOCKS_OUT = "it could lock the harness out, and would outlive the trial"
_REFUSED: Mapping[bytes, str] = {
    b"client|reply": "the relay needs the reply to every command",
    b"client|pause": "it would hold up the harness as well",
    b"shutdown": _ENDS_SERVER,
    b"debug": _ENDS_SERVER,
    b"failover": _ENDS_SERVER,
    b"replicaof": _ENDS_SERVER,
    b"slaveof": _ENDS_SERVER,
    b"module|load": "it would change the server for the trials that follow",
    b"module|loadex": "it would change the server for the trials that follow",
    b"module|unload": "it would change the server for the trials that follow",
    b"acl|setuser": _LOCKS_OUT,
    b"acl|deluser": _LOCKS_OUT,
    b"acl|load": _LOCKS_OUT,
    b"sync": "a connection that turns into a replica cannot be relayed",
    b"psync": "a connection that turns into a replica cannot be relayed",
}
# Servers before version 7 do not flag these, and tell no subcommands.
_BLOCKING = {
    b"blpop",
    b"brpop",
    b"brpoplpush",
    b"blmove",
    b"bzpopmin",
    b"bzpopmax",
    b"xread",
    b"xreadgroup",
    b"wait",
}
_UNTOLD = {*_REFUSED, b"script|load", b"config|set"}
_SCRIPT_AT = {b"eval": 1, b"script|load": 2}
_BLOCK_IS_AN_OPTION = {b"xread": 1, b"xreadgroup": 4}
"""Where the options of these begin; the words before are names of the user's own."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the table knows about one command."""

    op: str
    kind: Kind = Kind.PLAIN
    writes: bool = False
    keys: tuple[KeyFinder, ...] = ()


class Meaning(NamedTuple):
    """What one command means.

    ``writes`` also holds for blocking commands that take something away: inside a
    transaction they do not block, and are writes like any other. ``script`` is a
    script that the server will know from here on. ``why`` says why it is refused.
    ``raw_key`` is the key as it came.
    """

    kind: Kind
    op: str
    key: str | None = None
    writes: bool = False
    script: bytes | None = None
    why: str = ""
    raw_key: bytes | None = None


class CommandTable:
    """The commands of one server, from its reply to ``COMMAND`` (RESP2 values)."""

    def __init__(self, reply: Iterable[Sequence[Any]]) -> None:
        self._entries = {name: _entry(name) for name in _UNTOLD}
        self._entries.update(_entries(reply))
        self._families = {
            name.partition(b"|")[0] for name in self._entries if b"|" in name
        }

    def __contains__(self, name: str) -> bool:
        return name.encode() in self._entries

    def meaning(self, words: Words) -> Meaning:
        """What a command means by itself, outside of a transaction.

        A command that the server does not know passes; the server will say so.
        """
        name, entry = self._look_up(words)
        kind, op = entry.kind, entry.op
        if name == b"config|set" and b"requirepass" in map(bytes.lower, words[2::2]):
            return Meaning(Kind.REFUSED, "config|set requirepass", why=_LOCKS_OUT)
        if kind is Kind.REFUSED:
            return Meaning(kind, op, why=_REFUSED[name])
        if kind is Kind.BLOCKING and not _may_block(name, words):
            kind = Kind.WRITE if entry.writes else Kind.PLAIN
        raw = _first_key(entry, words) if entry.writes else None
        key = None if raw is None else _text(raw)
        script = _script(name, words)
        return Meaning(kind, op, key, entry.writes, script, raw_key=raw)

    def _look_up(self, words: Words) -> tuple[bytes, Entry]:
        name = words[0].lower()
        if name in self._families and len(words) > 1:
            full = name + b"|" + words[1].lower()
            if full in self._entries:
                return full, self._entries[full]
        return name, self._entries.get(name) or Entry(_text(name))


def _entries(reply: Iterable[Sequence[Any]]) -> Iterable[tuple[bytes, Entry]]:
    for told in reply:
        name = bytes(told[0]).lower()
        flags = {bytes(flag) for flag in told[2]}
        yield name, _entry(name, flags, *finders(name, told))
        if len(told) > 9:
            yield from _entries(told[9])


def _entry(name: bytes, flags: Collection[bytes] = (), *keys: KeyFinder) -> Entry:
    kind = Kind.WRITE if b"write" in flags else Kind.PLAIN
    if b"blocking" in flags or name in _BLOCKING:
        kind = Kind.BLOCKING
    if name in _REFUSED:
        kind = Kind.REFUSED
    kind = _BY_NAME.get(name, kind)
    return Entry(_text(name), kind, b"write" in flags or kind is Kind.WRITE, keys)


def _may_block(name: bytes, words: Words) -> bool:
    if name not in _BLOCK_IS_AN_OPTION:
        return True
    for word in words[_BLOCK_IS_AN_OPTION[name] :]:
        if word.lower() in (b"block", b"streams"):
            return word.lower() == b"block"
    return False


def _first_key(entry: Entry, words: Words) -> bytes | None:
    for finder in entry.keys:
        key = finder.find(words)
        if key is not None:
            return key
    return None


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _script(name: bytes, words: Words) -> bytes | None:
    place = _SCRIPT_AT.get(name)
    return None if place is None else b"".join(words[place:][:1]) or None
