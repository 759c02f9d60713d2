"""Steps: what a relay does next for a client of PostgreSQL, and what answers it."""

from typing import NamedTuple

from chaoskit.wire.postgres.framing import ROLLBACK, message

_ASKS_NOTHING = (0, 12)
"""Kinds of authentication message that want no reply."""
_COMPLETIONS = frozenset(b"123nTCIs")
_PARSED, _READY, _ERROR, _AUTHENTICATION, _COMPLETE = b"1ZERC"
_CHANGES = (b"INSERT ", b"UPDATE ", b"DELETE ", b"MERGE ")
_SPECIAL = frozenset(b"ZERGW")


class Until(NamedTuple):
    """What ends the answer: so many ReadyForQuery, or so many messages' completions.

    ``authentication``: or that the server asks for a password, or refuses.
    """

    readies: int = 0
    completions: int = 0
    authentication: bool = False


NOTHING, READY = Until(), Until(readies=1)


class Part(NamedTuple):
    """Something to send, and what ends its answer."""

    raw: bytes = b""
    until: Until = NOTHING


UNDO = Part(ROLLBACK, READY)
"""Takes back whatever is not committed."""
UNDO_COPY = Part(message(b"f", b"the commit fails\0"), READY)
"""The same where the server waits for rows."""


Label = tuple[str, str | None]
"""What a commit is called at the gate: operation and key."""


class Step(NamedTuple):
    """What to do next: pass ``work`` on, or take it through the gate.

    ``label`` is what a step is called that is a crossing, None for one that passes.
    ``whole`` is work and commit in one, for who waits for nobody. ``wrapped``: the work
    is in a transaction block of the relay's own, whose answers are not the client's.
    ``locks``: it will keep everybody from reading a table until the transaction ends.
    ``schema``: functions may be others once it is done. ``syncs``: the client expects a
    ReadyForQuery at its end. ``ends``: it is the client's last. ``undo`` takes back
    what the server has of it, and of its transaction, before it.
    """

    work: Part
    commit: Part = Part()
    whole: Part = Part()
    label: Label | None = None
    wrapped: bool = False
    locks: bool = False
    schema: bool = False
    syncs: bool = True
    ends: bool = False
    undo: Part = UNDO


class Answer:
    """What came back for one part, taken in message by message.

    ``status`` is that of the last ReadyForQuery, if there was one; ``copies``: the
    server now waits for rows; ``parsed`` counts the statements that it took.
    """

    def __init__(self, until: Until) -> None:
        self._until = until
        self._readies = self._completions = self.parsed = self.rows = 0
        self.status = b""
        self.failed = self.copies = False

    def take(self, reply: bytes) -> bool:
        """Take in a message; True if it was the last one."""
        tag = reply[0]
        if tag in _COMPLETIONS:
            self._completions += 1
            if tag == _PARSED:
                self.parsed += 1
            elif tag == _COMPLETE and reply.startswith(_CHANGES, 5):
                self.rows += int(reply[5:-1].rsplit(b" ", 1)[1])
            return self._completions == self._until.completions
        return tag in _SPECIAL and self._take_special(tag, reply)

    def _take_special(self, tag: int, reply: bytes) -> bool:
        if tag == _READY:
            self.status = reply[5:6]
            self._readies += 1
            return self._readies >= self._until.readies
        if tag == _ERROR:
            self.failed = True
            return bool(self._until.completions or self._until.authentication)
        if tag == _AUTHENTICATION:
            return int.from_bytes(reply[5:9], "big") not in _ASKS_NOTHING
        self.copies = True
        return True
