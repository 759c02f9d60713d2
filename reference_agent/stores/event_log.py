"""One file of events, to which several processes append, and whose order decides.

An event says its number, and counts only if that is the next one: **the place in the
file is the compare-and-set**. Who appends writes one line with O_APPEND, syncs, and
reads what the file has got since: either its own line is the next event, or another's
line came first, and then its own never counts, for any reader. So nobody needs a lock,
and nobody's word has to be taken for it. (A network file system without atomic appends
cannot do that.)

- A line that is broken, at the end, is what a writer left that died in it: it never
  said that the event was kept. It is never continued: the next line begins on a new
  one, and says ``torn``, so that no damage in the middle can pass for such a tail.
- A broken line before one that does not say so, and a number left out, are damage:
  UnreadableCheckpoint, with the place. Nothing is repaired by guessing.
- A log that is ``moved`` takes no more events; the next one begins with a snapshot of
  where it ended. That is always the same, so whoever comes can write it.

Lines are those of `reference_agent.stores.changes`. An event is {"set": fields of
`Run`} with "change", a difference of documents, or "document", a whole one.
"""

import errno
import fcntl
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from reference_agent.stores.base import Document, UnreadableCheckpoint
from reference_agent.stores.changes import apply, decode_event, encode_event

LEASE = ("token", "owner", "until", "seconds", "takes")
TURN_LOOKS, TURN_SECONDS = 100, 0.005
ATTEMPTS = 5


@dataclass(frozen=True)
class Run:
    """A run after one of its events: the document, and the newest lease.

    Times are whole microseconds: a line's length does not hang on the clock.
    """

    number: int
    run_id: str
    document: Document
    wake_at: int | None = 0
    token: int = 0
    owner: str | None = None
    until: int = 0
    seconds: float = 0.0
    takes: int = 0
    moved: bool = False

    def after(self, number: int, event: dict[str, Any]) -> "Run":
        """The run after one more event. Raises ValueError or TypeError."""
        document = apply(self.document, event.get("change", {}))
        return replace(self, number=number, document=document, **event["set"])

    def holder(self, now: float) -> str | None:
        """Who holds it under a lease that has not expired."""
        return self.owner if self.until > microseconds(now) else None

    def taken(self, owner: str, now: float, seconds: float) -> "Run":
        """The run under a new lease; tokens rise whatever the clock does."""
        token = max(self.token + 1, microseconds(now))
        lease = replace(self, token=token, owner=owner, takes=self.takes + 1)
        return replace(lease, until=microseconds(now + seconds), seconds=seconds)

    def lease(self) -> dict[str, Any]:
        """The fields that a take sets."""
        return {name: getattr(self, name) for name in LEASE}

    def snapshot(self) -> bytes:
        """The first line of a log that goes on from here."""
        fields = asdict(replace(self, document={}, moved=False))
        del fields["number"], fields["document"]
        event = {"set": fields, "document": self.document}
        return encode_event(self.number, event).encode() + b"\n"


class EventLog:
    """An open log; ``run`` is what its events come to, as far as it was read.

    Raises OSError, and UnreadableCheckpoint for damage.
    """

    run: Run

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events = -1  # after the snapshot
        self.snapshot_bytes = 0
        self._read_to = 0
        self._broken: str | None = None  # the place of a line that may be torn
        self._is_torn = False
        self._file = os.open(path, os.O_RDWR | os.O_APPEND)
        try:
            self.catch_up()
            if self.events < 0:
                raise self._unreadable("it has no whole first line")
        except BaseException:
            self.close()
            raise

    def append(self, fields: dict[str, Any], change: Any = None) -> bool:
        """Make an event the next one, durably; False if another came first."""
        event = {"set": fields} | ({"change": change} if change else {})
        number = self.run.number + 1
        # A writer may die in its line right before ours, and spoil it: then once more.
        for _ in range(ATTEMPTS):
            if self.run.number >= number or self.run.moved:
                return False
            torn = {"torn": True} if self._is_torn else {}
            line = encode_event(number, event | torn).encode()
            write(self._file, b"\n" * self._is_torn + line + b"\n")
            os.fsync(self._file)
            if line in self.catch_up():
                return True
        raise OSError(errno.EIO, "what was appended does not come back", self.path.name)

    def catch_up(self) -> set[bytes]:
        """Read what was appended since; which lines of it count."""
        counted: set[bytes] = set()
        if not (unread := self._unread()):
            return counted
        *lines, tail = unread.split(b"\n")
        for line in lines:
            if line and self._take_in(line):
                counted.add(line)
            self._read_to += len(line) + 1
        if is_whole(tail):  # all but its end: the next line's begin will end it
            self._take_in(tail)
            self._read_to += len(tail)
        self._is_torn = bool(tail) or self._broken is not None
        return counted

    def is_long(self, events: int) -> bool:
        """Whether a snapshot is due: after so many events that weigh as much as it.

        So all snapshots together cost no more than the events, however large a
        document grows, and the log is never much longer than two documents.
        """
        grown = self._read_to - self.snapshot_bytes
        return self.events >= events and grown >= self.snapshot_bytes

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let one writer try at a time, as a courtesy, so that others leave no lines.

        Whoever dies lets go of it. Whoever was stopped does not, so nobody waits long.
        """
        for _ in range(TURN_LOOKS):
            with suppress(BlockingIOError):
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(TURN_SECONDS)
        try:
            self.catch_up()
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def sync(self) -> None:
        """Make durable what was read: its writer may have died before it did."""
        os.fsync(self._file)

    def close(self) -> None:
        """Let the file go."""
        os.close(self._file)

    def _unread(self) -> bytes:
        parts, at = [], self._read_to
        if os.fstat(self._file).st_size < at:
            raise self._unreadable("it became shorter: somebody has cut it")
        while part := os.pread(self._file, 1 << 20, at):
            parts.append(part)
            at += len(part)
        return b"".join(parts)

    def _take_in(self, line: bytes) -> bool:
        try:
            number, event = decode_event(line)
        except ValueError as error:
            self._broken = self._broken or f"line {self._line()}: {error}"
            return False
        if self._broken and not event.get("torn"):
            raise self._unreadable(self._broken)
        self._broken = None
        if self.events < 0:
            self._begin(number, event, line)
        elif number <= self.run.number or self.run.moved:
            return False
        elif number > self.run.number + 1:
            raise self._unreadable(
                f"line {self._line()}: an event before it is missing"
            )
        else:
            self._go_on(number, event)
        self.events += 1
        return True

    def _begin(self, number: int, event: dict[str, Any], line: bytes) -> None:
        if self._read_to:
            raise self._unreadable("line 1: it is no snapshot")
        self.snapshot_bytes = len(line) + 1
        try:
            document = apply({}, {"=": event["document"]})
            self.run = Run(number, document=document, **event["set"])
        except (LookupError, TypeError, ValueError) as error:
            raise self._unreadable("line 1: it is no snapshot") from error

    def _go_on(self, number: int, event: dict[str, Any]) -> None:
        try:
            self.run = self.run.after(number, event)
        except (LookupError, TypeError, ValueError) as error:
            raise self._unreadable(f"line {self._line()}: {error}") from error

    def _line(self) -> int:
        return os.pread(self._file, self._read_to, 0).count(b"\n") + 1

    def _unreadable(self, reason: str) -> UnreadableCheckpoint:
        known = self.run.document if self.events >= 0 else {}
        numbers = {name: known.get(name) for name in ("step", "checkpoint_id")}
        told = {name: n for name, n in numbers.items() if type(n) is int}
        return UnreadableCheckpoint(f"{self.path.name}, {reason}", **told)


def microseconds(moment: float) -> int:
    """A time in whole microseconds, not before it."""
    return math.ceil(moment * 1e6)


def is_whole(line: bytes) -> bool:
    """Whether it is an event's line, with its checksum."""
    try:
        decode_event(line)
    except ValueError:
        return False
    return True


def write(file: int, data: bytes) -> None:
    """All of it; a part that was written alone is a torn line to every reader."""
    while data:
        data = data[os.write(file, data) :]
