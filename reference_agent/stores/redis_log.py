"""Runs in Redis as logs: each save appends what changed.

A run is a list, `agent:log:<run>`, of events (see `changes`): the first holds a whole
document, each one after it a change. Loading replays them. A save costs one RPUSH, as
long as the change, however long the run has become. Once there are ``snapshot_every``
changes, and they are as long as the document, the next save replaces them with a whole
one: that bounds what there is to replay, and what it writes is on average no more than
the changes were.

An event that is damaged is told by its number, and stays; what came before it is not
passed off as the run. An event is only ever appended to the one that it follows: where
the server has forgotten some, the save becomes a whole document. What else there is to
know of Redis stands in `redis_runs`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from reference_agent.stores.base import (
    NOW,
    Document,
    Fenced,
    UnreadableCheckpoint,
    decode,
    encode,
)
from reference_agent.stores.changes import (
    Event,
    apply,
    decode_event,
    difference,
    encode_event,
)
from reference_agent.stores.redis_runs import Found, Layout, RedisRuns

LAYOUT = Layout(
    kind="log",
    read="LRANGE",
    options=(0, -1),
    lua="""
local SIZE = 'LLEN'
local function mark(key)
  local last = redis.call('LINDEX', key, -1) or ''
  return redis.call('LLEN', key) .. ' ' .. redis.sha1hex(last)
end
local function write(key, text, whole)
  if whole then redis.call('DEL', key) end
  redis.call('RPUSH', key, text)
end
""",
)


@dataclass(frozen=True)
class Log(Found):
    """A log as it stands: its last event's number, and how much has changed in it.

    Its document is kept as a text, which nobody can change behind our back.
    """

    number: int
    changes: int
    changes_bytes: int

    def is_long(self, snapshot_every: int) -> bool:
        """Whether a whole document should take the place of the changes."""
        many = self.changes >= snapshot_every
        return many and self.changes_bytes >= len(self.text)


class RedisLog(RedisRuns[Log]):
    """A `Store`. Connects at its first use; ``ttl_seconds`` after its last write it is
    as if a run had never been."""

    def __init__(
        self, url: str, *, ttl_seconds: float, snapshot_every: int = 50
    ) -> None:
        super().__init__(url, LAYOUT, ttl_seconds)
        self._snapshot_every = snapshot_every
        self._logs: dict[str, Log] = {}

    def create(self, run_id: str, document: Document) -> bool:
        """See `Store.create`."""
        line, _ = _whole(1, encode(document))
        return self._create(run_id, line)

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
        text = encode(document)
        # Forgotten until it is saved: after an error nobody knows how the log stands.
        log = self._logs.pop(run_id, None) or self._log(run_id)
        line, saved = _change(log, text)
        if log.is_long(self._snapshot_every) or not self._save(
            run_id, token, line, wake_at, keep=keep, after=log.mark
        ):
            line, saved = _whole(log.number + 1, text)
            self._save(run_id, token, line, wake_at, keep=keep)
        if keep:
            self._logs[run_id] = saved

    def release(self, run_id: str, token: int) -> None:
        """See `Store.release`."""
        self._logs.pop(run_id, None)
        super().release(run_id, token)

    def _log(self, run_id: str) -> Log:
        if looked := self._look(run_id):
            return looked[0]
        raise Fenced(f"there is no run {run_id} any more")

    def _taken(self, run_id: str, found: Log) -> None:
        self._logs[run_id] = found

    def _rebuilt(self, read: Sequence[bytes]) -> Log:
        return replayed(read)


def replayed(lines: Sequence[bytes]) -> Log:
    """The log that these events make. Raises UnreadableCheckpoint."""
    document: Document = {}
    number = 0
    for place, line in enumerate(lines):
        try:
            number, event = _next(place, number, line)
            document = apply(document, event)
        except ValueError as error:
            which = f"event {number + 1}" if place else "the first event"
            where = f"element {place} of {len(lines)} in the list"
            raise UnreadableCheckpoint(f"{which} ({where}): {error}") from error
    changes_bytes = sum(map(len, lines[1:]))
    mark = _mark(len(lines), lines[-1])
    return Log(encode(document), mark, number, len(lines) - 1, changes_bytes)


def _next(place: int, number: int, line: bytes) -> tuple[int, Event]:
    told, event = decode_event(line)
    if place == 0 and "=" not in event:
        raise ValueError("it is a change, and what it changed is missing")
    if place and told != number + 1:
        raise ValueError(f"it is missing; number {told} stands in its place")
    return told, event


def _whole(number: int, text: str) -> tuple[str, Log]:
    """The event that holds the whole document, and the log that it begins."""
    line = encode_event(number, {"=": decode(text)})
    return line, Log(text, _mark(1, line.encode()), number, 0, 0)


def _change(log: Log, text: str) -> tuple[str, Log]:
    """The event that leads to this document, and the log with it."""
    number, changes = log.number + 1, log.changes + 1
    line = encode_event(number, difference(decode(log.text), decode(text)))
    changes_bytes = log.changes_bytes + len(line)
    return line, Log(
        text, _mark(changes + 1, line.encode()), number, changes, changes_bytes
    )


def _mark(length: int, last: bytes) -> str:
    return f"{length} {hashlib.sha1(last, usedforsecurity=False).hexdigest()}"
