"""SQLite: a run is a row of `agent_runs`, its lease one of `agent_leases`.

Each change is a transaction that begins with the right to write, so that what it reads
is still so when it commits. Any number of processes on one machine may share the file:
a change waits for another's, at most `BUSY_SECONDS_MAX`. All times are this machine's.

Durable by the write-ahead log: a commit returns once the log is synced, and other
processes see it only then. FULL would do for that; EXTRA also covers the one commit in
the older mode, the one that makes a new file. But whoever opens the file after a kill
reads all of the log, also what was written and never synced, and a loss of power could
take that back: so names are synced at opening, and the log before `load` returns. A
`take` needs no more, since its own commit syncs all of the log. What is left to lose is
what a disk that lies about its syncs has not written.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reference_agent.stores.base import (
    NOW,
    Document,
    Due,
    Fenced,
    Held,
    StoreUnavailable,
    UnreadableCheckpoint,
    decode,
    encode,
)

BUSY_SECONDS_MAX = 10.0

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS agent_runs (
        run_id TEXT PRIMARY KEY, document TEXT NOT NULL, wake_at REAL)""",
    """CREATE TABLE IF NOT EXISTS agent_leases (
        run_id TEXT PRIMARY KEY, token INTEGER NOT NULL DEFAULT 0,
        owner TEXT NOT NULL DEFAULT '', until REAL NOT NULL DEFAULT 0,
        seconds REAL NOT NULL DEFAULT 0, takes INTEGER NOT NULL DEFAULT 0)""",
    """CREATE INDEX IF NOT EXISTS agent_runs_due ON agent_runs (wake_at)
        WHERE wake_at IS NOT NULL""",
)
_THERE = "SELECT 1 FROM sqlite_schema WHERE name = 'agent_runs_due'"
"""What is created last."""

_CREATE = "INSERT OR IGNORE INTO agent_runs VALUES (:run, :document, :now)"
_CREATE_LEASE = "INSERT INTO agent_leases (run_id) VALUES (:run)"
_LOAD = """
    SELECT CAST(document AS BLOB), token, CASE WHEN until > :now THEN owner END, takes
    FROM agent_runs LEFT JOIN agent_leases USING (run_id) WHERE run_id = :run"""
_TAKE = """
    UPDATE agent_leases SET token = max(token + 1, :clock), owner = :owner,
        until = :now + :seconds, seconds = :seconds, takes = takes + 1
    WHERE run_id = :run RETURNING token, takes"""
_RENEW = """
    UPDATE agent_leases SET takes = 0,
        until = CASE WHEN :keep THEN :now + seconds ELSE 0 END
    WHERE run_id = :run AND token = :token"""
_SAVE = """
    UPDATE agent_runs SET document = :document, wake_at =
        CASE WHEN :at_once THEN min(ifnull(wake_at, :now), :now) ELSE :wake_at END
    WHERE run_id = :run"""
_RELEASE = "UPDATE agent_leases SET until = 0 WHERE run_id = :run AND token = :token"
_DUE = """
    SELECT run_id, CASE WHEN until > :now THEN owner END
    FROM agent_runs LEFT JOIN agent_leases USING (run_id)
    WHERE wake_at <= :now ORDER BY wake_at, run_id"""
_NEXT = "SELECT min(wake_at) FROM agent_runs WHERE wake_at > :since"

_FOREIGN = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)
"""No database, a damaged one, or one with other columns; all else may pass."""


class SqliteStore:
    """A `Store`; makes the file at its first use, and opens it again after an error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._looked = 0.0

    def now(self) -> float:
        """See `Store`."""
        return time.time()

    def create(self, run_id: str, document: Document) -> bool:
        """See `Store`."""
        given = {"run": run_id, "document": encode(document), "now": self.now()}
        with self._change() as db:
            is_new = db.execute(_CREATE, given).rowcount > 0
            if is_new:
                db.execute(_CREATE_LEASE, given)
        return is_new

    def load(self, run_id: str) -> Held | None:
        """See `Store`. Whatever of it is in the log is synced before it returns."""
        with self._connected() as db:
            held = _held(db, run_id, self.now())
            _sync(self._log)
        return held

    def take(
        self, run_id: str, owner: str, seconds: float, *, over: str | None = None
    ) -> Held | None:
        """See `Store`. Nothing is written if it cannot be had."""
        with self._change() as db:
            now = self.now()
            held = _held(db, run_id, now)
            if held is None or held.owner not in (None, over):
                return None
            given = {"run": run_id, "owner": owner, "seconds": seconds, "now": now}
            given["clock"] = int(now * 1_000_000)
            ((token, takes),) = db.execute(_TAKE, given).fetchall()
        return Held(held.document, token, owner, takes)

    def save(
        self,
        run_id: str,
        token: int,
        document: Document,
        *,
        wake_at: float | None = NOW,
        keep: bool = True,
    ) -> None:
        """See `Store`."""
        given = {"run": run_id, "token": token, "document": encode(document)}
        given |= {"keep": keep, "wake_at": wake_at, "at_once": wake_at == NOW}
        with self._change() as db:
            given["now"] = self.now()
            if not db.execute(_RENEW, given).rowcount:
                raise Fenced(f"run {run_id}: token {token} is not the newest")
            db.execute(_SAVE, given)

    def release(self, run_id: str, token: int) -> None:
        """See `Store`."""
        with self._change() as db:
            db.execute(_RELEASE, {"run": run_id, "token": token})

    def due(self) -> Sequence[Due]:
        """See `Store`. The index is of the unfinished runs only."""
        with self._connected() as db:
            self._looked = self.now()
            return [Due(*row) for row in db.execute(_DUE, {"now": self._looked})]

    def wait(self, seconds: float) -> None:
        """See `Store`. Nobody tells of a new run: the caller looks again and again."""
        with self._connected() as db:
            ((at,),) = db.execute(_NEXT, {"since": self._looked}).fetchall()
        if at is not None:
            seconds = min(seconds, at - self.now())
        time.sleep(max(0.0, seconds))

    def close(self) -> None:
        """See `Store`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @property
    def _log(self) -> Path:
        return self._path.with_name(f"{self._path.name}-wal")

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is committed, or nothing."""
        with self._connected() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._connection is None:
                self._connection = self._open()
            yield self._connection
        except sqlite3.Error as error:
            self.close()
            raise _told(error, self._path) from error
        except OSError as error:
            self.close()
            raise StoreUnavailable(f"SQLite: {self._path}: {error.strerror}") from error

    def _open(self) -> sqlite3.Connection:
        """One at a time: to change the mode of a file nobody else may be opening it."""
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            db = _opened(self._path)
            _sync(self._log)
            os.fsync(folder)
        finally:
            os.close(folder)
        return db


def _opened(path: Path) -> sqlite3.Connection:
    seconds = BUSY_SECONDS_MAX
    db = sqlite3.connect(path, timeout=seconds, isolation_level=None)
    try:
        db.execute("PRAGMA synchronous = EXTRA")
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise sqlite3.NotSupportedError("this disk allows no write-ahead log")
        if not db.execute(_THERE).fetchall():
            for statement in _SCHEMA:
                db.execute(statement)
    except BaseException:
        db.close()
        raise
    return db


def _held(db: sqlite3.Connection, run_id: str, now: float) -> Held | None:
    row = db.execute(_LOAD, {"run": run_id, "now": now}).fetchone()
    if row is None:
        return None
    document, token, owner, takes = row
    if token is None:
        raise UnreadableCheckpoint("its row in agent_leases is gone")
    return Held(decode(document), token, owner, takes)


def _sync(path: Path) -> None:
    """Make a file's content durable, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _told(error: sqlite3.Error, path: Path) -> Exception:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _FOREIGN:
        return UnreadableCheckpoint(f"{path} cannot be used: {error}")
    return StoreUnavailable(f"SQLite: {path}: {error}")
