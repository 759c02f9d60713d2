"""Checkpoints in Redis: one SET for each, under `agent:checkpoint:<run>`.

The expiry travels in the same command, so every write renews it: what nobody resumes
goes away by itself, and no write can succeed without its expiry.

How durable that is depends on the server: with `appendfsync everysec` a crash of the
server, not of the agent, may lose the last second.
"""

from typing import cast

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from reference_agent.checkpoint import UnreadableCheckpoint
from reference_agent.store import StoreUnavailable

DAY_SECONDS = 24 * 60 * 60


class RedisStore:
    """A `Store`. Connects at its first use."""

    def __init__(self, url: str, *, ttl_seconds: int = DAY_SECONDS) -> None:
        # The client would send a command again by itself, and nobody would know.
        never = Retry(NoBackoff(), 0)
        # RESP2 spares the greeting, and nothing here needs RESP3.
        self._redis = Redis.from_url(url, retry=never, protocol=2)
        self._ttl_seconds = ttl_seconds

    def load(self, run_id: str) -> bytes | None:
        """See `Store.load`."""
        try:
            return cast("bytes | None", self._redis.get(_key(run_id)))
        except ResponseError as error:
            if str(error).startswith("WRONGTYPE"):
                raise UnreadableCheckpoint("the key holds no string") from error
            raise _unavailable(error) from error
        except RedisError as error:
            raise _unavailable(error) from error

    def save(self, run_id: str, document: str) -> None:
        """See `Store.save`."""
        try:
            self._redis.set(_key(run_id), document, ex=self._ttl_seconds)
        except RedisError as error:
            raise _unavailable(error) from error

    def close(self) -> None:
        """Let the connection go."""
        self._redis.close()


def _key(run_id: str) -> str:
    return f"agent:checkpoint:{run_id}"


def _unavailable(error: RedisError) -> StoreUnavailable:
    return StoreUnavailable(f"Redis: {type(error).__name__}")
