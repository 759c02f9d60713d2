"""What a Redis server answers, in the words of `Store`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from reference_agent.stores.base import (
    Document,
    Due,
    Held,
    StoreUnavailable,
    UnreadableCheckpoint,
)

ANSWER_SECONDS_MAX = 30


@contextmanager
def answered(damage: type[Exception] = UnreadableCheckpoint) -> Iterator[None]:
    """The server's answers, in the words of `Store`; a key may hold something else."""
    try:
        yield
    except ResponseError as error:
        if "WRONGTYPE" in str(error):
            raise damage(f"Redis: a key holds something else: {error}") from error
        raise StoreUnavailable(f"Redis refused: {error}") from error
    except RedisError as error:
        raise StoreUnavailable(f"Redis: {type(error).__name__}: {error}") from error


def connection(url: str) -> Redis:
    """A client that sends everything once. Raises StoreUnavailable for no address."""
    try:
        return Redis.from_url(
            url,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=ANSWER_SECONDS_MAX,
            socket_connect_timeout=ANSWER_SECONDS_MAX,
            protocol=2,  # it spares the greeting, and nothing here needs RESP3
        )
    except ValueError as error:
        raise StoreUnavailable(f"Redis: {error}") from error


def held_as(document: Document, lease: Sequence[bytes | None], now: float) -> Held:
    """The run, of token, owner, until and takes. Raises UnreadableCheckpoint."""
    token, owner, until, takes = lease
    try:
        by = _owner((owner, until), now)
        return Held(document, int(token or 0), by, int(takes or 0))
    except (ValueError, TypeError) as error:
        raise UnreadableCheckpoint(f"its lease is none: {lease}") from error


def due_as(run_id: str, lease: Any, now: float) -> Due:
    """The run, of owner and until, or of the error that came in their place."""
    try:
        return Due(run_id, _owner(lease, now))
    except (ValueError, TypeError):
        return Due(run_id, None)  # `take` will say what is wrong with it


def _owner(lease: Any, now: float) -> str | None:
    owner, until = lease
    return str(owner.decode()) if owner and float(until) > now else None


def time_as(moment: tuple[int, int]) -> float:
    """Seconds since the epoch, of what TIME answers."""
    return moment[0] + moment[1] / 1e6
