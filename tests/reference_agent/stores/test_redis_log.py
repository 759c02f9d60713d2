"""What only the log in Redis promises: events for changes, and none taken on trust."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reference_agent.stores.base import Held, UnreadableCheckpoint, encode
from reference_agent.stores.redis_log import RedisLog

Deed = Callable[[], object]


@pytest.fixture
def log(valkey: Any, valkey_url: str) -> Iterator[RedisLog]:
    """A log with a whole document after five events."""
    made = RedisLog(valkey_url, ttl_seconds=1000, snapshot_every=5)
    yield made
    made.close()


@pytest.fixture
def reopened(valkey: Any, valkey_url: str) -> Iterator[RedisLog]:
    """The same log as another process has it, which remembers nothing."""
    made = RedisLog(valkey_url, ttl_seconds=1000)
    yield made
    made.close()


def taken(log: RedisLog, document: Any = None) -> Held:
    """A new run r1, held by w1."""
    assert log.create("r1", document or {"n": 0})
    held = log.take("r1", "w1", 60)
    assert held is not None
    return held


def test_a_save_costs_what_changed(
    log: RedisLog, reopened: RedisLog, valkey: Any
) -> None:
    """Over a thousand saves: what is sent stays flat, and what is read is bounded."""
    document: Any = {"step": 1000, "messages": []}
    held = taken(log, document)
    changes: list[int] = []
    wholes: list[int] = []
    for step in range(1001, 2001):
        document["step"] = step
        document["messages"].append({"role": "tool", "content": "x" * 100})
        before = received(valkey)
        log.save("r1", held.token, document)
        kept = changes if valkey.llen("agent:log:r1") > 1 else wholes
        kept.append(received(valkey) - before)
    assert max(changes) < min(changes) + 20
    assert len(wholes) < 20
    assert sum(wholes) < sum(changes)
    _, *events = valkey.lrange("agent:log:r1", 0, -1)
    assert sum(map(len, events)) < len(encode(document)) + 200
    assert reopened.load("r1") == Held(document, held.token, "w1", 0)


def received(valkey: Any) -> int:
    """What the server has received so far, in bytes."""
    return int(valkey.info("stats")["total_net_input_bytes"])


def test_events_are_added_to_nothing_but_what_they_follow(
    log: RedisLog, reopened: RedisLog, valkey: Any
) -> None:
    """A server that has forgotten some events gets a whole document, and no gap."""
    held = taken(log)
    for n in range(1, 4):
        log.save("r1", held.token, {"n": n, "m": [n]})
    losses: list[Deed] = [
        lambda: valkey.rpop("agent:log:r1"),
        lambda: valkey.rpop("agent:log:r1", 2),
        lambda: valkey.lset("agent:log:r1", -1, '{"number":3,"event":{},"check":"00"}'),
        lambda: valkey.delete("agent:log:r1"),
    ]
    for forget in losses:
        log.save("r1", held.token, {"n": 4, "m": [4]})
        forget()
        log.save("r1", held.token, {"n": 5, "m": [4, 5]})
        assert valkey.llen("agent:log:r1") == 1
        assert reopened.load("r1") == Held({"n": 5, "m": [4, 5]}, held.token, "w1", 0)
        log.save("r1", held.token, {"n": 6, "m": [4, 5]})
        log.save("r1", held.token, {"n": 7, "m": [4, 5]})


def test_a_save_without_memory_reads_the_log_first(
    log: RedisLog, reopened: RedisLog, valkey: Any
) -> None:
    held = taken(log)
    log.save("r1", held.token, {"n": 1, "text": "stays"})
    reopened.save("r1", held.token, {"n": 2, "text": "stays"})
    assert valkey.llen("agent:log:r1") == 3
    # The first one's memory is out of date now: nothing may be built on it.
    log.save("r1", held.token, {"n": 3, "text": "stays"})
    assert reopened.load("r1") == Held({"n": 3, "text": "stays"}, held.token, "w1", 0)


def test_what_the_caller_changes_later_is_not_taken_for_saved(
    log: RedisLog, reopened: RedisLog
) -> None:
    held = taken(log, {"m": []})
    document: Any = held.document
    for n in range(4):
        document["m"].append(n)
        log.save("r1", held.token, document)
    found = reopened.load("r1")
    assert found is not None
    assert found.document == {"m": [0, 1, 2, 3]}


@pytest.mark.parametrize(
    ("place", "which"), [(0, "the first event"), (2, "event 3"), (4, "event 5")]
)
@pytest.mark.parametrize(
    "damage", [b"", b"junk", b'{"number":3,"event":{},"check":"00"}', b"\xff\x00"]
)
def test_a_damaged_event_is_told_by_number_and_stays(
    log: RedisLog,
    reopened: RedisLog,
    valkey: Any,
    place: int,
    which: str,
    damage: bytes,
) -> None:
    held = taken(log)
    for n in range(1, 5):
        log.save("r1", held.token, {"n": n})
    valkey.lset("agent:log:r1", place, damage)
    keys = ("agent:log:r1", "agent:lease:log:r1", "agent:due:log")
    before = [valkey.dump(key) for key in keys]
    told = rf"{which} \(element {place} of 5 in the list\): it"
    deeds: list[Deed] = [
        lambda: log.load("r1"),
        lambda: log.take("r1", "w2", 60, over="w1"),
        lambda: reopened.save("r1", held.token, {"n": 5}),
    ]
    for deed in deeds:
        with pytest.raises(UnreadableCheckpoint, match=told):
            deed()
    assert [valkey.dump(key) for key in keys] == before


def test_a_missing_event_is_told(log: RedisLog, valkey: Any) -> None:
    held = taken(log)
    for n in range(1, 5):
        log.save("r1", held.token, {"n": n})
    valkey.lrem("agent:log:r1", 1, valkey.lindex("agent:log:r1", 2))
    with pytest.raises(UnreadableCheckpoint, match=r"event 3 .* number 4 stands"):
        log.load("r1")


def test_a_whole_document_makes_earlier_damage_irrelevant(
    log: RedisLog, reopened: RedisLog, valkey: Any
) -> None:
    held = taken(log)
    log.save("r1", held.token, {"n": 1})
    log.save("r1", held.token, {"n": 2})
    valkey.lset("agent:log:r1", 1, "damaged")
    for n in range(3, 10):
        log.save("r1", held.token, {"n": n})
    assert reopened.load("r1") == Held({"n": 9}, held.token, "w1", 0)
