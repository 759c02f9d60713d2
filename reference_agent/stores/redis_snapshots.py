"""Runs in Redis as snapshots: each save replaces the whole document.

A run is a string, `agent:checkpoint:<run>`, with the document as JSON. It is replaced
and its expiry renewed in one step, so that a reader sees the old one or the new one. A
save writes as much as the document is long; where runs grow long, `redis_log` writes
less. What else there is to know of Redis stands in `redis_runs`.
"""

import hashlib

from reference_agent.stores.base import NOW, Document, encode
from reference_agent.stores.redis_runs import Found, Layout, RedisRuns

LAYOUT = Layout(
    kind="checkpoint",
    read="GET",
    lua="""
local SIZE = 'STRLEN'
local function mark(key) return redis.sha1hex(redis.call('GET', key) or '') end
local function write(key, text) redis.call('SET', key, text) end
""",
)


class RedisSnapshots(RedisRuns[Found]):
    """A `Store`. Connects at its first use; ``ttl_seconds`` after its last write it is
    as if a run had never been."""

    def __init__(self, url: str, *, ttl_seconds: float) -> None:
        super().__init__(url, LAYOUT, ttl_seconds)

    def create(self, run_id: str, document: Document) -> bool:
        """See `Store.create`."""
        return self._create(run_id, encode(document))

    def save(
        self,
        run_id: str,
        token: int,
        document: Document,
        *,
        wake_at: float | None = NOW,
        keep: bool = True,
    ) -> None:
        """See `Store.save`."""
        self._save(run_id, token, encode(document), wake_at, keep=keep)

    def _rebuilt(self, read: bytes) -> Found:
        digest = hashlib.sha1(read, usedforsecurity=False)
        return Found(read, digest.hexdigest())
