"""Runs in Redis, whatever their documents look like there: leases, wake-ups, expiry.

| key                        | holds                                                |
|----------------------------|------------------------------------------------------|
| `agent:<kind>:<run>`       | the document, in the store's own layout              |
| `agent:lease:<kind>:<run>` | token, takes, mark; while leased owner, until,       |
|                            | seconds; the mark tells what was saved last          |
| `agent:due:<kind>`         | the runs to look after, by the time at which to wake |

Document and lease expire together, at a moment that each write puts off: a run that
nobody resumes goes away by itself, and never in part. One without the other was
evicted or deleted: without its lease nobody can prove to hold a run, and without its
document it cannot be read.

Every change is one EVAL (see `redis_scripts`), sent once: the client's own retries are
turned off, because nobody would know how often a command was applied. EVAL, and not
EVALSHA: that one needs a second try after each restart of the server. Looks are plain
reads, so polls cost nothing but their answers.

This takes one primary of Redis 7 or Valkey, set to keep what it acknowledged:
`maxmemory-policy noeviction`, and `appendonly yes` with `appendfsync always`. With
`everysec` a crash of the server may lose the last second, and a failover to a replica
what had not reached it. A token that was lost with it is never given out again, so the
holder is fenced; but what it did since its last kept save may be done again.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from reference_agent.stores import redis_scripts as scripts
from reference_agent.stores.base import (
    Due,
    Fenced,
    Held,
    StoreUnavailable,
    UnreadableCheckpoint,
    decode,
)
from reference_agent.stores.redis_replies import (
    answered,
    connection,
    due_as,
    held_as,
    time_as,
)

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Layout:
    """What documents of one kind look like: a name, Lua, and how to read one whole.

    ``read`` is a command that the key follows, and then ``options``.
    """

    kind: str
    lua: str
    read: str
    options: tuple[int, ...] = ()


@dataclass(frozen=True)
class Found:
    """A document, and what ``mark`` in the layout's Lua says as long as it is there."""

    text: bytes | str
    mark: str


FoundT = TypeVar("FoundT", bound=Found)


class RedisRuns(Generic[FoundT]):
    """The part of a `Store` that is the same for every layout."""

    def __init__(self, url: str, layout: Layout, ttl_seconds: float) -> None:
        self._redis = connection(url)
        self._layout = layout
        self._ttl_seconds = ttl_seconds
        self._due = f"agent:due:{layout.kind}"
        self._seen = 0.0

    def now(self) -> float:
        """See `Store.now`."""
        with answered():
            return time_as(self._redis.time())

    def load(self, run_id: str) -> Held | None:
        """See `Store.load`."""
        looked = self._look(run_id)
        return None if looked is None else looked[1]

    def take(
        self, run_id: str, owner: str, seconds: float, *, over: str | None = None
    ) -> Held | None:
        """See `Store.take`. It is read first: a claim that cannot be used is none."""
        while looked := self._look(run_id):
            found, held = looked
            if held.owner not in (None, over):
                return None
            keys = [self._lease(run_id), self._document(run_id), self._due]
            said, *fresh = self._run(
                scripts.CLAIM, keys, run_id, owner, seconds, over or "", found.mark
            )
            if said == b"held":
                return None
            if said == b"done":
                self._taken(run_id, found)
                return Held(held.document, int(fresh[0]), owner, int(fresh[1]))
        return None

    def release(self, run_id: str, token: int) -> None:
        """See `Store.release`."""
        self._run(scripts.RELEASE, [self._lease(run_id)], token)

    def due(self) -> Sequence[Due]:
        """See `Store.due`."""
        self._seen = now = self.now()
        with answered(StoreUnavailable):
            members: Any = self._redis.zrangebyscore(self._due, "-inf", now)
            runs = [member.decode("utf-8", "replace") for member in members]
            looks = self._redis.pipeline(transaction=False)
            for run in runs:
                looks.exists(self._document(run), self._lease(run))
                looks.hmget(self._lease(run), "owner", "until")
            # What is wrong with one run must not hide the others.
            answers = looks.execute(raise_on_error=False)
        seen = list(zip(runs, answers[::2], answers[1::2], strict=True))
        self._forget([run for run, parts, _ in seen if parts == 0])
        return [due_as(run, lease, now) for run, parts, lease in seen if parts != 0]

    def wait(self, seconds: float) -> None:
        """See `Store.wait`."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if (pause := self._until_news()) <= 0:
                return
            time.sleep(min(left, pause, POLL_SECONDS))

    def close(self) -> None:
        """See `Store.close`."""
        self._redis.close()

    def _rebuilt(self, read: Any) -> FoundT:
        """The document, of what the layout's command has read."""
        raise NotImplementedError

    def _taken(self, run_id: str, found: FoundT) -> None:
        """The run is ours, and this is how it was found."""

    def _create(self, run_id: str, text: str) -> bool:
        keys = [self._document(run_id), self._lease(run_id), self._due]
        return bool(self._run(scripts.CREATE, keys, run_id, text) == b"done")

    def _save(
        self,
        run_id: str,
        token: int,
        text: str,
        wake_at: float | None,
        *,
        keep: bool,
        after: str = "",
    ) -> bool:
        """Write it whole, or only ``after`` what has that mark; False if it has not."""
        keys = [self._document(run_id), self._lease(run_id), self._due]
        wake = "" if wake_at is None else repr(float(wake_at))
        said = self._run(
            scripts.SAVE, keys, run_id, token, wake, int(keep), after, text
        )
        if said == b"fenced":
            raise Fenced(f"the lease on {run_id} is not the newest any more, or ended")
        return bool(said == b"done")

    def _look(self, run_id: str) -> tuple[FoundT, Held] | None:
        document, lease = self._document(run_id), self._lease(run_id)
        with answered():
            looks: Any = self._redis.pipeline(transaction=True)
            looks.exists(document)
            looks.execute_command(self._layout.read, document, *self._layout.options)
            looks.hmget(lease, "mark", "token", "owner", "until", "takes")
            looks.time()
            there, read, (mark, *told), moment = looks.execute()
        if not there and told[0] is None:
            return None
        if not there:
            raise UnreadableCheckpoint(
                f"{document} is gone, and {lease} is not: the server has evicted a part"
                " of the run, or somebody deleted it"
            )
        found = self._rebuilt(read)
        held = held_as(decode(found.text), told, time_as(moment))
        if mark not in (None, found.mark.encode()):
            raise UnreadableCheckpoint(
                f"{document} is not what was saved last: it should be {mark},"
                f" and is {found.mark}"
            )
        return found, held

    def _until_news(self) -> float:
        """Seconds until some run is due that was not yet when `due` looked."""
        with answered(StoreUnavailable):
            looks: Any = self._redis.pipeline(transaction=False)
            looks.time()
            looks.zrangebyscore(
                self._due, f"({self._seen!r}", "+inf", start=0, num=1, withscores=True
            )
            moment, found = looks.execute()
        return float(found[0][1] - time_as(moment)) if found else POLL_SECONDS

    def _forget(self, run_ids: Sequence[str]) -> None:
        """These have expired: nobody needs to look after them."""
        if run_ids:
            parts = [(self._document(run), self._lease(run)) for run in run_ids]
            keys = [self._due, *(key for pair in parts for key in pair)]
            with answered(StoreUnavailable):
                self._redis.eval(scripts.FORGET, len(keys), *keys, *run_ids)

    def _run(self, script: str, keys: Sequence[str], *values: str | float) -> Any:
        script = self._layout.lua + script
        with answered():
            return self._redis.eval(
                script, len(keys), *keys, self._ttl_seconds, *map(str, values)
            )

    def _document(self, run_id: str) -> str:
        return f"agent:{self._layout.kind}:{run_id}"

    def _lease(self, run_id: str) -> str:
        return f"agent:lease:{self._layout.kind}:{run_id}"
