"""A simple store that keeps its promises, and others that break one promise each.

`SimpleStore` is one file for each run, replaced as a whole under one lock for all.
Each of the others is named for its bug; `test_conformance_catches` says who finds it.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

from reference_agent.stores.base import (
    NOW,
    Document,
    Due,
    Fenced,
    Held,
    UnreadableCheckpoint,
    decode,
    encode,
)


@dataclass(frozen=True)
class Row:
    """What is in a file."""

    run_id: str
    document: str
    wake_at: float | None = NOW
    token: int = 0
    owner: str | None = None
    until: float = 0.0
    seconds: float = 0.0
    takes: int = 0


class SimpleStore:
    """A `Store`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def now(self) -> float:
        return time.time()

    def create(self, run_id: str, document: Document) -> bool:
        text = self._encode(document)
        with self._lock():
            if self._path(run_id).exists():
                return False
            self._write(Row(run_id, text))
            return True

    def load(self, run_id: str) -> Held | None:
        row = self._read(self._path(run_id))
        return None if row is None else self._held(row)

    def take(
        self, run_id: str, owner: str, seconds: float, *, over: str | None = None
    ) -> Held | None:
        with self._lock():
            row = self._read(self._path(run_id))
            if row is None or self._owner(row) not in (None, over):
                return None
            row = replace(
                row,
                token=self._next_token(row),
                owner=owner,
                until=self.now() + seconds,
                seconds=seconds,
                takes=row.takes + 1,
            )
            self._write(row)
            return self._held(row)

    def save(
        self,
        run_id: str,
        token: int,
        document: Document,
        *,
        wake_at: float | None = NOW,
        keep: bool = True,
    ) -> None:
        text = self._encode(document)
        with self._lock():
            row = self._read(self._path(run_id))
            if row is None or token != row.token:
                raise Fenced(f"{token} is not the newest token of {run_id}")
            until = self.now() + row.seconds if keep else 0.0
            self._write(
                replace(row, document=text, wake_at=wake_at, until=until, takes=0)
            )

    def release(self, run_id: str, token: int) -> None:
        with self._lock():
            row = self._read(self._path(run_id))
            if row is not None and row.token == token:
                self._write(replace(row, until=0.0))

    def due(self) -> list[Due]:
        rows = [row for row in self._rows() if self._is_due(row)]
        rows.sort(key=lambda row: row.wake_at or 0.0)
        return [Due(row.run_id, self._owner(row)) for row in rows]

    def wait(self, seconds: float) -> None:
        known, end = self.due(), time.monotonic() + seconds
        while time.monotonic() < end and self.due() == known:
            Event().wait(min(0.01, seconds))

    def close(self) -> None:
        pass

    def _held(self, row: Row) -> Held:
        return Held(decode(row.document), row.token, self._owner(row), row.takes)

    def _owner(self, row: Row) -> str | None:
        return row.owner if row.until > self.now() else None

    def _is_due(self, row: Row) -> bool:
        return row.wake_at is not None and row.wake_at <= self.now()

    def _next_token(self, row: Row) -> int:
        return max(row.token + 1, int(self.now() * 1e6))

    def _encode(self, document: Document) -> str:
        return encode(document)

    def _path(self, run_id: str) -> Path:
        return self._folder / f"{sha256(run_id.encode()).hexdigest()}.run"

    def _rows(self) -> Iterator[Row]:
        for path in self._folder.glob("*.run"):
            with suppress(UnreadableCheckpoint):
                if row := self._read(path):
                    yield row

    def _read(self, path: Path) -> Row | None:
        try:
            row = Row(**json.loads(path.read_bytes()))
            decode(row.document)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise UnreadableCheckpoint("the file holds no run") from error
        return row

    def _write(self, row: Row) -> None:
        path = self._path(row.run_id)
        draft = path.with_suffix(".draft")
        with draft.open("w") as file:
            json.dump(asdict(row), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with (self._folder / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class WritesInPlace(SimpleStore):
    """A reader, or a kill, meets half a document."""

    def _write(self, row: Row) -> None:
        with self._path(row.run_id).open("w") as file:
            json.dump(asdict(row), file)


class SavesInTwoSteps(SimpleStore):
    """The document first, its wake-up and lease then."""

    def _write(self, row: Row) -> None:
        with suppress(UnreadableCheckpoint):
            if old := self._read(self._path(row.run_id)):
                super()._write(replace(old, document=row.document))
        super()._write(row)


class TheLastOneWins(SimpleStore):
    """Never looks at the token."""

    def save(self, run_id: str, token: int, *args: Any, **options: Any) -> None:
        held = self.load(run_id)
        if held is None:
            raise Fenced("no such run")
        super().save(run_id, held.token, *args, **options)


class ChecksBeforeItLocks(SimpleStore):
    """Looks at the lease, and takes whatever is there some time later."""

    def take(
        self, run_id: str, owner: str, seconds: float, *, over: str | None = None
    ) -> Held | None:
        held = self.load(run_id)
        if held is None or held.owner not in (None, over):
            return None
        Event().wait(0.05)
        return super().take(run_id, owner, seconds, over=self.load(run_id).owner)


class FencesItsHolder(SimpleStore):
    """Who has the run hears that it was taken over; one worker waits in vain."""

    def take(self, run_id: str, owner: str, *args: Any, **options: Any) -> Held | None:
        if owner == "worker 0":
            return None
        return super().take(run_id, owner, *args, **options)

    def save(self, run_id: str, token: int, *args: Any, **options: Any) -> None:
        raise Fenced(f"{token} was taken over by nobody")


class CreatesTwice(SimpleStore):
    """The second creator wins, too."""

    def create(self, run_id: str, document: Document) -> bool:
        self._write(Row(run_id, self._encode(document)))
        return True


class TokensRestart(SimpleStore):
    """Counts in the handle."""

    _last = 0

    def _next_token(self, row: Row) -> int:
        self._last += 1
        return self._last


class TokensAreSeconds(SimpleStore):
    """Two takes within a second have one token; a clock set back, an older one."""

    def _next_token(self, row: Row) -> int:
        return int(self.now())


class CountsBackwards(SimpleStore):
    """Its tokens are the clock, which may be set back."""

    def _next_token(self, row: Row) -> int:
        return int(self.now() * 1e6)


class ForgetsTheTakes(SimpleStore):
    """A release is taken for progress."""

    def release(self, run_id: str, token: int) -> None:
        super().release(run_id, token)
        row = self._read(self._path(run_id))
        if row is not None and row.token == token:
            self._write(replace(row, takes=0))


class OrdersByTheClock(SimpleStore):
    """Keeps every save under its second; within one, the first that was there stays."""

    def _read(self, path: Path) -> Row | None:
        row = super()._read(path)
        kept = sorted(path.parent.glob(f"{path.stem}.at.*"))
        if row is None or not kept:
            return row
        return replace(row, document=kept[-1].read_text())

    def _write(self, row: Row) -> None:
        super()._write(row)
        path = self._path(row.run_id)
        second = path.with_suffix(f".at.{int(self.now())}")
        if not second.exists():
            second.write_text(row.document)


class OrdersByText(SimpleStore):
    """Numbers its checkpoints, and takes 9 for more than 10."""

    def _read(self, path: Path) -> Row | None:
        row = super()._read(path)
        kept = sorted(path.parent.glob(f"{path.stem}.number.*"))
        if row is None or not kept:
            return row
        return replace(row, document=kept[-1].read_text())

    def _write(self, row: Row) -> None:
        super()._write(row)
        path = self._path(row.run_id)
        number = len(list(path.parent.glob(f"{path.stem}.number.*")))
        path.with_suffix(f".number.{number}").write_text(row.document)


class GluesToATornTail(SimpleStore):
    """Appends to a log without a look at how it ends; the last whole line counts."""

    def _read(self, path: Path) -> Row | None:
        if not path.exists():
            return None
        for line in reversed(path.read_bytes().split(b"\n")):
            with suppress(ValueError, TypeError):
                return Row(**json.loads(line))
        return None

    def _write(self, row: Row) -> None:
        with self._path(row.run_id).open("ab", buffering=0) as log:
            text = json.dumps(asdict(row)).encode()
            log.write(text[:100])
            log.write(text[100:] + b"\n")


class MakesTextsOfValues(SimpleStore):
    """``json.dumps(default=str)``, the classic."""

    def _encode(self, document: Document) -> str:
        return json.dumps(document, default=str)


class ComparesByEquality(SimpleStore):
    """Skips a save that changes nothing, and thinks that 1 is True."""

    def save(self, run_id: str, token: int, document: Document, **options: Any) -> None:
        held = self.load(run_id)
        if held is not None and held.document == document:
            document = held.document
        super().save(run_id, token, document, **options)


class DamagedIsNothing(SimpleStore):
    """What cannot be read was never there."""

    def _read(self, path: Path) -> Row | None:
        with suppress(UnreadableCheckpoint):
            return super()._read(path)
        return None

    def create(self, run_id: str, document: Document) -> bool:
        if self.load(run_id) is None:
            self._path(run_id).unlink(missing_ok=True)
        return super().create(run_id, document)


class ClearsDamageAway(SimpleStore):
    """Says that it cannot be read, and moves it out of the way."""

    def _read(self, path: Path) -> Row | None:
        try:
            return super()._read(path)
        except UnreadableCheckpoint:
            path.write_text("moved")
            raise


class FoldsCase(SimpleStore):
    """One file for `run` and `Run`, as some file systems have it."""

    def _path(self, run_id: str) -> Path:
        return super()._path(run_id.lower())


class TrustsNames(SimpleStore):
    """A run id is a path."""

    def _path(self, run_id: str) -> Path:
        path = self._folder / f"{run_id}.run"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


class LeasesNeverEnd(SimpleStore):
    """Ignores that the time is over."""

    def _owner(self, row: Row) -> str | None:
        return row.owner if row.until else None


class ReleasesForAnybody(SimpleStore):
    """Does not ask who lets go."""

    def release(self, run_id: str, token: int) -> None:
        held = self.load(run_id)
        super().release(run_id, held.token if held else token)


class SavesDoNotRenew(SimpleStore):
    """The lease ends in the middle of the work."""

    def _write(self, row: Row) -> None:
        with suppress(UnreadableCheckpoint):
            old = self._read(self._path(row.run_id))
            if old and old.token == row.token and row.until:
                row = replace(row, until=old.until)
        super()._write(row)


class HidesLeasedRuns(SimpleStore):
    """`due` leaves out what somebody holds."""

    def due(self) -> list[Due]:
        return [due for due in super().due() if due.owner is None]


class WakesEarly(SimpleStore):
    """Cuts the wake-up to whole seconds."""

    def _is_due(self, row: Row) -> bool:
        return row.wake_at is not None and int(row.wake_at) <= self.now()


class SleepsThrough(SimpleStore):
    """`wait` sees nothing until its time is over."""

    def wait(self, seconds: float) -> None:
        Event().wait(seconds)


class Spins(SimpleStore):
    """`wait` does not wait."""

    def wait(self, seconds: float) -> None:
        pass


class LosesLetters(SimpleStore):
    """An encoding that is not for all texts."""

    def _encode(self, document: Document) -> str:
        return super()._encode(document).replace("\\u0000", "")


class ClosesOnce(SimpleStore):
    """Like a file descriptor."""

    _closed = False

    def close(self) -> None:
        if self._closed:
            raise OSError("it is closed")
        self._closed = True


class ExpiringStore(SimpleStore):
    """A run that nobody wrote to for so long is gone."""

    def __init__(self, folder: Path, ttl_seconds: float) -> None:
        super().__init__(folder)
        self._ttl_seconds = ttl_seconds

    def _gone(self, path: Path) -> bool:
        try:
            return path.stat().st_mtime + self._ttl_seconds < self.now()
        except FileNotFoundError:
            return True

    def _read(self, path: Path) -> Row | None:
        if self._gone(path):
            return None
        return super()._read(path)

    def create(self, run_id: str, document: Document) -> bool:
        path = self._path(run_id)
        if self._gone(path):
            path.unlink(missing_ok=True)
        return super().create(run_id, document)


class ExpiresInAPause(ExpiringStore):
    """Sound, on a machine that stood still for longer than a run is kept."""

    pauses: ClassVar[list[str]] = ["one", "and another"]

    def save(self, *args: Any, **options: Any) -> None:
        super().save(*args, **options)
        if self.pauses:
            self.pauses.pop()
            Event().wait(1.2)


class ExpiresInPart(ExpiringStore):
    """The lease goes first."""

    def _read(self, path: Path) -> Row | None:
        row = super()._read(path)
        if row and path.stat().st_mtime + self._ttl_seconds / 2 < self.now():
            return replace(row, until=0.0)
        return row


class ExpiresAtWork(ExpiringStore):
    """Counts from the creation, and not from the last write."""

    def _write(self, row: Row) -> None:
        path = self._path(row.run_id)
        born = path.stat().st_mtime if path.exists() else self.now()
        super()._write(row)
        os.utime(path, (born, born))
