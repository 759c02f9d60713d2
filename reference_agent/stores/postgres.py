"""PostgreSQL: a run is a row of `agent_runs`, its lease a row of `agent_leases`.

Each change is one statement, so that it is done whole or not at all. A save changes the
lease's row under its token first, and so locks it: a stale token finds no row, and who
would take the run over meanwhile passes it by (SKIP LOCKED): nobody waits for another.

Durable by the server's log: a statement that changes something returns once its commit
is on the server's disk, and nobody sees it earlier. `synchronous_commit` is switched on
for each connection, whatever the role is set to. What is left to lose are commits that
a failover to an asynchronous standby forgets, or a server that runs with `fsync = off`.

The document is text and not `jsonb`, which refuses ``\\u0000`` and lone surrogates, and
brings numbers and names back in another form. All times are the server's.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors
from psycopg.rows import TupleRow

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

CHANNEL = "agent_due"
CONNECT_SECONDS_MAX = 10
IDLE_SECONDS = 30
"""After so long without a word the system asks whether the server is still there."""

_CLOCK = "extract(epoch FROM clock_timestamp())::double precision"

_SCHEMA = f"""
    SELECT pg_advisory_xact_lock(hashtext('{CHANNEL}'));
    CREATE TABLE IF NOT EXISTS agent_runs (
        run_id text PRIMARY KEY,
        document text NOT NULL,
        wake_at double precision);
    CREATE TABLE IF NOT EXISTS agent_leases (
        run_id text PRIMARY KEY REFERENCES agent_runs ON DELETE CASCADE,
        token bigint NOT NULL DEFAULT 0,
        owner text NOT NULL DEFAULT '',
        until double precision NOT NULL DEFAULT 0,
        seconds double precision NOT NULL DEFAULT 0,
        takes integer NOT NULL DEFAULT 0);
    CREATE INDEX IF NOT EXISTS agent_runs_due ON agent_runs (wake_at)
        WHERE wake_at IS NOT NULL
"""
"""Two that create at once: the lock lets the second find all of it there."""

_THERE = "SELECT to_regclass('agent_runs_due') IS NOT NULL"
"""What is created last. Asked first, since creating would write something each time."""

_CREATE = f"""
    WITH made AS (
        INSERT INTO agent_runs VALUES (%(run)s, %(document)s, {_CLOCK})
        ON CONFLICT DO NOTHING RETURNING run_id),
    lease AS (INSERT INTO agent_leases (run_id) SELECT run_id FROM made)
    SELECT pg_notify('{CHANNEL}', run_id) FROM made
"""
_LOAD = f"""
    SELECT document, token, CASE WHEN until > {_CLOCK} THEN owner END, takes
    FROM agent_runs LEFT JOIN agent_leases USING (run_id) WHERE run_id = %(run)s
"""
_TAKE = f"""
    WITH free AS (
        SELECT run_id, document FROM agent_runs JOIN agent_leases USING (run_id)
        WHERE run_id = %(run)s AND (until <= {_CLOCK} OR owner = %(over)s)
        FOR UPDATE SKIP LOCKED)
    UPDATE agent_leases SET owner = %(owner)s, seconds = %(seconds)s,
        token = greatest(token + 1, floor({_CLOCK} * 1000000)::bigint),
        until = {_CLOCK} + %(seconds)s, takes = takes + 1
    FROM free WHERE agent_leases.run_id = free.run_id
    RETURNING document, token, owner, takes
"""
"""Locks both rows: a document that was saved while this looked is the one it finds."""

_SAVE = f"""
    WITH lease AS (
        UPDATE agent_leases SET takes = 0,
            until = CASE WHEN %(keep)s THEN {_CLOCK} + seconds ELSE 0 END
        WHERE run_id = %(run)s AND token = %(token)s RETURNING run_id)
    UPDATE agent_runs SET document = %(document)s,
        wake_at = CASE WHEN %(now)s THEN least(wake_at, {_CLOCK}) ELSE %(wake_at)s END
    FROM lease WHERE agent_runs.run_id = lease.run_id
    RETURNING CASE WHEN %(tell)s THEN pg_notify('{CHANNEL}', lease.run_id) END
"""
_RELEASE = f"""
    UPDATE agent_leases SET until = 0 WHERE run_id = %(run)s AND token = %(token)s
    RETURNING pg_notify('{CHANNEL}', run_id)
"""
_DUE = f"""
    SELECT run_id, CASE WHEN until > {_CLOCK} THEN owner END
    FROM agent_runs LEFT JOIN agent_leases USING (run_id)
    WHERE wake_at <= %(now)s ORDER BY wake_at, run_id
"""
_NEXT = f"SELECT min(wake_at) - {_CLOCK} FROM agent_runs WHERE wake_at > %(since)s"

_FOREIGN = (errors.UndefinedColumn, errors.DatatypeMismatch, errors.WrongObjectType)
"""What a table of the same name, but of somebody else, answers."""


class PostgresStore:
    """A `Store`; connects at its first use, and again after an error."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection | None = None
        self._looked = 0.0

    def now(self) -> float:
        """See `Store`."""
        ((now,),) = self._rows(f"SELECT {_CLOCK}")
        return float(now)

    def create(self, run_id: str, document: Document) -> bool:
        """See `Store`."""
        return bool(self._rows(_CREATE, run=run_id, document=encode(document)))

    def load(self, run_id: str) -> Held | None:
        """See `Store`. What another sees of a commit is on the disk already."""
        return next(map(_held, self._rows(_LOAD, run=run_id)), None)

    def take(
        self, run_id: str, owner: str, seconds: float, *, over: str | None = None
    ) -> Held | None:
        """See `Store`. It looks first: what cannot be read, or had, is not written."""
        found = self.load(run_id)
        if found is None or found.owner not in (None, over):
            return None
        asked = {"owner": owner, "seconds": seconds, "over": over}
        return next(map(_held, self._rows(_TAKE, run=run_id, **asked)), None)

    def save(
        self,
        run_id: str,
        token: int,
        document: Document,
        *,
        wake_at: float | None = NOW,
        keep: bool = True,
    ) -> None:
        """See `Store`. Who waits is told of a run that others may take now."""
        told = {"tell": not keep and wake_at is not None, "now": wake_at == NOW}
        given = {"document": encode(document), "wake_at": wake_at, "keep": keep}
        if not self._rows(_SAVE, run=run_id, token=token, **given, **told):
            raise Fenced(
                f"run {run_id}: the lease with token {token} is not the newest"
            )

    def release(self, run_id: str, token: int) -> None:
        """See `Store`."""
        self._rows(_RELEASE, run=run_id, token=token)

    def due(self) -> Sequence[Due]:
        """See `Store`. The index is of the unfinished runs only."""
        self._looked = self.now()
        return [Due(*row) for row in self._rows(_DUE, now=self._looked)]

    def wait(self, seconds: float) -> None:
        """See `Store`. What was told since the connection began counts, too."""
        ((until_next,),) = self._rows(_NEXT, since=self._looked)
        if until_next is not None:
            seconds = max(0.0, min(seconds, until_next))
        with self._connected() as connection:
            for _ in connection.notifies(timeout=seconds, stop_after=1):
                pass

    def close(self) -> None:
        """See `Store`."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _rows(self, statement: str, **given: Any) -> list[TupleRow]:
        with self._connected() as connection:
            return connection.execute(statement.encode(), given).fetchall()

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection]:
        """Nothing is tried again: whether a statement was done before is not known.

        A connection that the server has closed while nothing was asked is another
        matter: nothing was sent on it yet.
        """
        if self._connection is not None and _has_hung_up(self._connection):
            self.close()
        try:
            if self._connection is None:
                self._connection = psycopg.connect(
                    self._url,
                    autocommit=True,
                    client_encoding="UTF8",
                    connect_timeout=CONNECT_SECONDS_MAX,
                    keepalives_idle=IDLE_SECONDS,
                    prepare_threshold=None,
                )
                _prepare(self._connection)
            yield self._connection
        except psycopg.Error as error:
            self.close()
            said = f"{type(error).__name__}: {error}".splitlines()[0]
            if isinstance(error, _FOREIGN):
                raise UnreadableCheckpoint(
                    f"the tables are not ours: {said}"
                ) from error
            raise StoreUnavailable(f"PostgreSQL: {said}") from error


def _has_hung_up(connection: psycopg.Connection) -> bool:
    """Whether the end of the connection, or an error, is all there is to read."""
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        try:
            first = end.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True
    return first in (b"", b"E")


def _prepare(connection: psycopg.Connection) -> None:
    """Whatever the server's defaults are, and before anything is read."""
    connection.execute("SET synchronous_commit = on")
    connection.execute(f"LISTEN {CHANNEL}")
    if connection.execute(_THERE).fetchone() == (False,):
        connection.execute(_SCHEMA)


def _held(row: TupleRow) -> Held:
    document, token, owner, takes = row
    if token is None:
        raise UnreadableCheckpoint("its row in agent_leases is gone")
    return Held(decode(document), token, owner, takes)
