"""What a store forgets when a replica that lagged behind takes over.

While a rollback is due, the store's state is looked at before each write. To roll back
is to return to the state before one of the last of them: only what differs is touched,
in one transaction, so that who watches another key notices nothing. A write that
changed nothing leaves nothing to forget.
"""

import time
from collections import deque
from collections.abc import Iterable

from chaoskit.world.redis.link import Command, Refusal
from chaoskit.world.redis.snapshot import Key, Snapshot, restoring
from chaoskit.world.redis.state import RedisState

_SLACK_MS = 100
"""Two looks at the same time to live may differ by so much."""


class Past:
    """The states before the last writes that changed something, up to ``depth``."""

    def __init__(self, state: RedisState, depth: int) -> None:
        self._state = state
        self._seen: deque[tuple[float, Snapshot]] = deque(maxlen=depth + 1)

    async def remember(self) -> None:
        """A write is about to be applied."""
        now = await self._look()
        if not self._seen or _commands(now, self._seen[-1]):
            self._seen.append(now)

    async def forget(self, writes: int) -> bool:
        """Return to the state before that many of the last writes.

        Where there were fewer, to the state before the first; False if there was none.
        """
        now = await self._look()
        before = [seen for seen in self._seen if seen[0] <= now[0]]
        if before and not _commands(now, before[-1]):
            before.pop()
        if not before:
            return False
        commands = _commands(now, before[-min(writes, len(before))])
        *_, done = await self._state.link.do(("MULTI",), *commands, ("EXEC",))
        for value in done:
            if isinstance(value, Refusal):
                raise value
        return True

    async def _look(self) -> tuple[float, Snapshot]:
        return time.monotonic(), await self._state.snapshot()


def _commands(
    now: tuple[float, Snapshot], then: tuple[float, Snapshot]
) -> list[Command]:
    """What leads from one state to an earlier one."""
    passed_ms = int((now[0] - then[0]) * 1000)
    commands = list(_keys(now[1].keys, then[1].aged(passed_ms).keys))
    if now[1].functions != then[1].functions:
        commands.append(("FUNCTION", "FLUSH"))
        if then[1].functions:
            commands.append(("FUNCTION", "RESTORE", then[1].functions))
    return commands


def _keys(now: Iterable[Key], then: Iterable[Key]) -> Iterable[Command]:
    here = {(key.db, key.name): key for key in now}
    there = {(key.db, key.name): key for key in then}
    for place in sorted(here.keys() | there.keys()):
        db, name = place
        old = there.get(place)
        if old is None:
            yield "SELECT", db
            yield "DEL", name
        elif place not in here or not _alike(here[place], old):
            yield "SELECT", db
            yield "DEL", name
            yield from restoring(old)


def _alike(one: Key, other: Key) -> bool:
    times = [(one.left_ms, other.left_ms)]
    if one.fields or other.fields:
        mine = {field.name: field for field in one.fields}
        theirs = {field.name: field for field in other.fields}
        if {n: f.value for n, f in mine.items()} != {
            n: f.value for n, f in theirs.items()
        }:
            return False
        times += [(mine[name].left_ms, theirs[name].left_ms) for name in mine]
    elif one.dump != other.dump:
        return False
    return all(bool(a) == bool(b) and abs(a - b) <= _SLACK_MS for a, b in times)
