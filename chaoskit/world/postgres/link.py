"""Our own connections to a PostgreSQL server."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

__all__ = ["Connection", "link", "reaching"]

NAME = "chaoskit"
LOCK_SECONDS_MAX = 10
"""We wait no longer for a lock of the agent's: it may be waiting for us."""
Connection = psycopg.AsyncConnection[tuple[Any, ...]]

# Whatever the environment says to libpq is meant for others.
_DEFAULTS: Mapping[str, Any] = {
    "application_name": NAME,
    "client_encoding": "UTF8",
    "sslmode": "disable",
    "gssencmode": "disable",
    "passfile": "/dev/null/none",
    "options": f"-c lock_timeout={LOCK_SECONDS_MAX}s -c synchronous_commit=on",
    "port": 5432,
    "connect_timeout": 10,
}


async def link(connection: Mapping[str, Any]) -> Connection:
    """A new connection; each statement on it commits by itself.

    Raises:
        psycopg.OperationalError: nobody answers there, or not to us.
    """
    return await psycopg.AsyncConnection.connect(
        autocommit=True, **(dict(_DEFAULTS) | dict(connection))
    )


@contextmanager
def reaching() -> Iterator[None]:
    """Within it a server that has gone is a ConnectionError, as with other services."""
    try:
        yield
    except psycopg.OperationalError as gone:
        raise ConnectionError(f"PostgreSQL: {str(gone).strip()}") from gone
