"""One client's conversation with a Redis server, as a relay has to follow it.

Two things cannot be told from a command alone. Inside a transaction a command is
queued, not done. And which of the server's messages answers a command, rather than
being pushed in between, depends on what was subscribed to before.

A relay `read`s each command when its turn comes, asks `answers` of each message while
it waits, and tells the conversation what was `answered`. A transaction that has arrived
`whole` need not be followed word by word: it is one step, and one message.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from chaoskit.wire.redis.commands import CommandTable, Kind, Meaning
from chaoskit.wire.redis.requests import Command

_OK = b"+OK\r\n"
_RESET = b"+RESET\r\n"
# In RESP2 what was published looks like any other array. There, a connection that is
# subscribed to something cannot run the commands whose reply could look the same.
_PUBLISHED = (
    b"*3\r\n$7\r\nmessage\r\n",
    b"*4\r\n$8\r\npmessage\r\n",
    b"*3\r\n$8\r\nsmessage\r\n",
)


class Step(NamedTuple):
    """What to do with one command.

    ``kind`` is never `Kind.EXEC` or `Kind.DISCARD`: those have become a write or a
    plain command. ``replies`` messages answer it; with 0 nothing can be waited for.
    ``confirmation`` is how they begin after their first byte, where that matters.
    ``opening`` is what comes before ``EXEC``, where ``raw`` is a whole transaction.
    """

    raw: bytes
    meaning: Meaning
    replies: int = 1
    confirmation: bytes = b""
    opening: bytes = b""

    @property
    def kind(self) -> Kind:
        """What to do."""
        return self.meaning.kind


OURS = Step(b"", Meaning(Kind.PLAIN, ""))
"""A step that the relay takes by itself, not for the client."""


@dataclass
class Dialogue:
    """The state of one connection."""

    table: CommandTable
    _queueing: bool = False
    _first_write: Meaning | None = None
    _channels: dict[str, set[bytes]] = field(default_factory=dict)
    _published_as_arrays: bool = False
    _monitoring: bool = False

    def read(self, command: Command) -> Step:
        """The next command's turn has come."""
        meaning = self.table.meaning(command.words)
        if self._queueing:
            return Step(command.raw, self._queued(meaning))
        if meaning.kind is Kind.SUBSCRIBE:
            return self._subscribe(command, meaning)
        if self._monitoring and meaning.kind is not Kind.RESET:
            return Step(command.raw, meaning._replace(kind=Kind.PLAIN), replies=0)
        if meaning.kind in (Kind.EXEC, Kind.DISCARD):
            meaning = meaning._replace(kind=Kind.PLAIN)
        return Step(command.raw, meaning)

    def whole(self, multi: Command, rest: Sequence[Command]) -> Step | None:
        """A transaction in one step, from ``MULTI`` to ``EXEC``.

        None where it has to be read command by command.
        """
        *queued, last = rest or [multi]
        if len(multi.words) > 1 or [w.lower() for w in last.words] != [b"exec"]:
            return None
        meanings = [self.table.meaning(command.words) for command in queued]
        if any(self._channels.values()) or not all(map(_is_simple, meanings)):
            return None
        self._first_write = next((each for each in meanings if each.writes), None)
        opening = b"".join(command.raw for command in (multi, *queued))
        meaning = self._transaction(self.table.meaning(last.words))
        return Step(opening + last.raw, meaning, len(queued) + 2, opening=opening)

    @property
    def queueing(self) -> bool:
        """Whether the server queues what it is sent."""
        return self._queueing

    def answers(self, step: Step, message: bytes) -> bool:
        """Whether a message of the server answers the step, and was not pushed."""
        if step.confirmation:
            confirms = message.startswith(step.confirmation, 1)
            return confirms or message[:1] in (b"-", b"!")
        if message[:1] == b">":
            return False
        if self._monitoring:
            return message == _RESET
        return not (self._published_as_arrays and message.startswith(_PUBLISHED))

    def answered(self, step: Step, reply: bytes) -> None:
        """The last reply to a step is here."""
        if step.kind is Kind.MULTI and reply == _OK:
            self._queueing, self._first_write = True, None
        elif step.kind is Kind.MONITOR:
            self._monitoring = reply == _OK
        elif step.kind is Kind.SUBSCRIBE:
            listens = any(self._channels.values())
            self._published_as_arrays = listens and reply[:1] == b"*"
        elif step.kind is Kind.RESET:
            self._channels.clear()
            self._published_as_arrays = self._monitoring = False

    def _queued(self, meaning: Meaning) -> Meaning:
        match meaning.kind:
            case Kind.EXEC:
                self._queueing = False
                return self._transaction(meaning)
            case Kind.DISCARD:
                self._queueing = False
                return meaning._replace(kind=Kind.PLAIN)
            case Kind.RESET:
                self._queueing = False
                return meaning
            case Kind.SUBSCRIBE | Kind.MONITOR:
                why = "the relay cannot follow it inside MULTI"
                return meaning._replace(kind=Kind.REFUSED, why=why)
            case Kind.REFUSED:
                return meaning
        if meaning.writes and self._first_write is None:
            self._first_write = meaning
        return meaning._replace(kind=Kind.PLAIN)

    def _transaction(self, meaning: Meaning) -> Meaning:
        if self._first_write is None:
            return meaning._replace(kind=Kind.PLAIN)
        first = self._first_write
        return meaning._replace(kind=Kind.WRITE, key=first.key, raw_key=first.raw_key)

    def _subscribe(self, command: Command, meaning: Meaning) -> Step:
        """One confirmation comes for each channel; for none, where none is left."""
        verb, named = meaning.op, command.words[1:]
        held = self._channels.setdefault(verb.replace("unsub", "sub"), set())
        replies = len(named)
        if "unsub" not in verb:
            held.update(named)
        elif named:
            held.difference_update(named)
        else:
            replies = max(1, len(held))
            held.clear()
        name = verb.encode()
        prefix = b"3\r\n$%d\r\n%s\r\n" % (len(name), name)
        return Step(command.raw, meaning, max(1, replies), prefix)


def _is_simple(meaning: Meaning) -> bool:
    kinds = (Kind.PLAIN, Kind.WRITE, Kind.BLOCKING)
    return meaning.kind in kinds and meaning.script is None
