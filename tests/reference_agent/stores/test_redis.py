"""What only the two Redis stores promise: keys, expiry, evictions, logs, one EVAL each.

What every store promises is in `reference_agent.conformance`.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from reference_agent.stores.base import (
    Fenced,
    Held,
    StoreUnavailable,
    UnreadableCheckpoint,
)
from reference_agent.stores.redis_log import RedisLog
from reference_agent.stores.redis_snapshots import RedisSnapshots

Store = RedisSnapshots | RedisLog
Deed = Callable[[], object]
KINDS = {"checkpoint": RedisSnapshots, "log": RedisLog}
ROOT = Path(__file__).parents[3]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Where this store keeps its documents: ``agent:<kind>:<run>``."""
    return str(request.param)


@pytest.fixture
def store(kind: str, valkey: Any, valkey_url: str) -> Iterator[Store]:
    """A store of that kind, whose runs live for a thousand seconds."""
    made = KINDS[kind](valkey_url, ttl_seconds=1000)
    yield made
    made.close()


@contextmanager
def commands(valkey: Any) -> Iterator[list[str]]:
    """What the server was sent meanwhile, but not what scripts did inside it."""
    seen: list[str] = []
    with valkey.monitor() as monitor:
        yield seen
        valkey.echo("the end")
        for told in monitor.listen():
            if "the end" in told["command"]:
                return
            if told["client_type"] != "lua" and "CLIENT SETINFO" not in told["command"]:
                seen.append(told["command"])


def taken(store: Store, document: Any = None) -> Held:
    """A new run r1, held by w1."""
    assert store.create("r1", document or {"n": 0})
    held = store.take("r1", "w1", 60)
    assert held is not None
    return held


def expiries(valkey: Any, kind: str) -> set[Any]:
    keys = (f"agent:{kind}:r1", f"agent:lease:{kind}:r1")
    return {valkey.pexpiretime(key) for key in keys}


def everything(valkey: Any) -> dict[bytes, Any]:
    return {key: valkey.dump(key) for key in valkey.scan_iter()}


def test_each_change_is_one_script_and_its_first_key_tells_it(
    store: Store, kind: str, valkey: Any
) -> None:
    """What watches the wire can tell a save from a claim, and looks change nothing."""
    held = taken(store)
    document, lease = f"agent:{kind}:r1", f"agent:lease:{kind}:r1"
    changes: list[tuple[Deed, str]] = [
        (lambda: store.create("r2", {}), f"agent:{kind}:r2"),
        (lambda: store.save("r1", held.token, {"n": 1}), document),
        (lambda: store.release("r1", held.token), lease),
    ]
    for change, key in changes:
        with commands(valkey) as seen:
            change()
        assert [words.split()[0] for words in seen] == ["EVAL"]
        assert f" {key} " in seen[0]
    with commands(valkey) as seen:
        store.take("r1", "w2", 60)
    (claim,) = [words for words in seen if words.startswith("EVAL")]
    assert f" 3 {lease} {document} " in claim
    with commands(valkey) as seen:
        assert store.take("r1", "w3", 60) is None
        store.load("r1")
        store.due()
    assert not [words for words in seen if words.startswith("EVAL")]


def test_every_write_renews_the_expiry_of_the_whole_run(
    store: Store, kind: str, valkey: Any
) -> None:
    held = taken(store)
    writes: list[Deed] = [
        lambda: store.save("r1", held.token, {"n": 1}),
        lambda: store.take("r1", "w2", 60, over="w1"),
    ]
    for write in writes:
        for key in valkey.scan_iter("agent:*:r1"):
            valkey.pexpire(key, 5000)
        write()
        (moment,) = expiries(valkey, kind)
        assert 990_000 < moment - store.now() * 1000 < 1_000_001


def test_a_run_that_waits_lives_until_after_its_wait(
    store: Store, kind: str, valkey: Any
) -> None:
    """A wait of two days must not end with an expiry of one."""
    held = taken(store)
    wake_at = store.now() + 5000
    store.save("r1", held.token, {}, wake_at=wake_at, keep=False)
    assert expiries(valkey, kind) == {round((wake_at + 1000) * 1000)}
    store.take("r1", "w2", 60)
    assert expiries(valkey, kind) == {round((wake_at + 1000) * 1000)}


def test_an_expired_run_is_gone_whole_and_its_wake_up_too(
    store: Store, kind: str, valkey: Any
) -> None:
    held = taken(store)
    moment = int(store.now() * 1000) + 20
    for key in valkey.scan_iter("agent:*:r1"):
        valkey.pexpireat(key, moment)
    while store.load("r1"):
        pass
    assert store.take("r1", "w1", 60) is None
    with pytest.raises(Fenced):
        store.save("r1", held.token, {"n": 1})
    assert store.due() == []
    assert list(valkey.scan_iter()) == []
    assert store.create("r1", {"n": 5})


def test_without_its_lease_nobody_holds_the_run(
    store: Store, kind: str, valkey: Any
) -> None:
    held = taken(store)
    valkey.delete(f"agent:lease:{kind}:r1")
    with pytest.raises(Fenced):
        store.save("r1", held.token, {"n": 1})
    again = store.take("r1", "w2", 60)
    assert again is not None
    assert again.token > held.token
    assert again.document == {"n": 0}
    with pytest.raises(Fenced):
        store.save("r1", held.token, {"n": 1})


def test_a_lost_document_is_no_new_run(store: Store, kind: str, valkey: Any) -> None:
    taken(store)
    valkey.delete(f"agent:{kind}:r1")
    before = everything(valkey)
    with pytest.raises(UnreadableCheckpoint, match=f"agent:{kind}:r1 is gone"):
        store.load("r1")
    with pytest.raises(UnreadableCheckpoint, match="evicted"):
        store.take("r1", "w2", 60, over="w1")
    assert store.create("r1", {"n": 0}) is False
    assert everything(valkey) == before


def test_its_holder_brings_a_lost_document_back(
    store: Store, kind: str, valkey: Any
) -> None:
    held = taken(store)
    valkey.delete(f"agent:{kind}:r1")
    store.save("r1", held.token, {"n": 7})
    found = store.load("r1")
    assert found is not None
    assert found.document == {"n": 7}


@pytest.mark.parametrize("part", ["agent:{}:r1", "agent:lease:{}:r1", "agent:due:{}"])
def test_a_key_of_another_type_is_told_and_nothing_is_written(
    store: Store, kind: str, valkey: Any, part: str
) -> None:
    """A script that fails half-way would leave what it had written before."""
    held = taken(store)
    key = part.format(kind)
    valkey.delete(key)
    valkey.sadd(key, "foreign")
    before = everything(valkey)
    with pytest.raises(UnreadableCheckpoint, match="something else"):
        store.save("r1", held.token, {"n": 1})
    with pytest.raises(UnreadableCheckpoint, match="something else"):
        store.take("r1", "w2", 60, over="w1")
    assert everything(valkey) == before


def test_one_foreign_lease_hides_no_other_run(
    store: Store, kind: str, valkey: Any
) -> None:
    for run in ("r1", "r2", "r3"):
        assert store.create(run, {})
    valkey.delete(f"agent:lease:{kind}:r1")
    valkey.set(f"agent:lease:{kind}:r1", "foreign")
    foreign = {"token": "x", "owner": b"\xff", "until": "y"}
    valkey.hset(f"agent:lease:{kind}:r2", mapping=foreign)
    assert {each.run_id for each in store.due()} == {"r1", "r2", "r3"}
    for run in ("r1", "r2"):
        with pytest.raises(UnreadableCheckpoint):
            store.take(run, "w1", 60)


def test_a_foreign_list_of_wake_ups_blames_no_run(
    store: Store, kind: str, valkey: Any
) -> None:
    valkey.set(f"agent:due:{kind}", "foreign")
    for look in (store.due, lambda: store.wait(9)):
        with pytest.raises(StoreUnavailable, match="something else"):
            look()


def test_a_lease_that_has_ended_is_none(store: Store) -> None:
    """Its token is still the newest; but nobody may write to what nobody holds."""
    held = taken(store)
    store.release("r1", held.token)
    with pytest.raises(Fenced, match="ended"):
        store.save("r1", held.token, {"n": 1})


def test_a_claim_gives_what_was_saved_while_it_was_under_way(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was thought to be gone may save until the very claim."""
    held = taken(store)
    look = store._look

    def late(run_id: str) -> Any:
        monkeypatch.undo()
        looked = look(run_id)
        store.save("r1", held.token, {"n": 9})
        return looked

    monkeypatch.setattr(store, "_look", late)
    again = store.take("r1", "w2", 60, over="w1")
    assert again is not None
    assert again.document == {"n": 9}


def test_a_run_that_stays_with_its_holder_is_no_news(store: Store) -> None:
    """Its saves wake nobody, and it keeps its place among those that are due."""
    held = taken(store)
    assert store.create("r2", {})
    assert [each.run_id for each in store.due()] == ["r1", "r2"]
    store.save("r1", held.token, {"n": 1})
    assert store._until_news() > 0
    assert [each.run_id for each in store.due()] == ["r1", "r2"]
    store.save("r1", held.token, {"n": 2}, keep=False)
    assert store._until_news() <= 0
    assert [each.run_id for each in store.due()] == ["r2", "r1"]


def test_what_is_not_what_was_saved_last_is_told(
    store: Store, kind: str, valkey: Any
) -> None:
    """A document that reads well, and is an older one, or one of somebody else."""
    held = taken(store)
    old = valkey.dump(f"agent:{kind}:r1")
    store.save("r1", held.token, {"n": 1})
    valkey.restore(f"agent:{kind}:r1", 0, old, replace=True)
    with pytest.raises(UnreadableCheckpoint, match="is not what was saved last"):
        store.take("r1", "w2", 60, over="w1")


@pytest.mark.parametrize("foreign", [b"", b"{", b"[1]", b"\xff\xfe", b"null"])
def test_a_foreign_document_is_kept_and_not_claimed(
    store: Store, kind: str, valkey: Any, foreign: bytes
) -> None:
    taken(store)
    key = f"agent:{kind}:r1"
    valkey.delete(key)
    if kind == "log":
        valkey.rpush(key, foreign)
    else:
        valkey.set(key, foreign)
    before = everything(valkey)
    looks: list[Deed] = [
        lambda: store.load("r1"),
        lambda: store.take("r1", "w2", 60, over="w1"),
    ]
    for look in looks:
        with pytest.raises(UnreadableCheckpoint):
            look()
    assert everything(valkey) == before


@pytest.mark.parametrize(
    ("setting", "value"), [("maxmemory", 1), ("min-replicas-to-write", 1)]
)
def test_a_server_that_refuses_has_changed_nothing(
    store: Store, valkey: Any, setting: str, value: int
) -> None:
    held = taken(store)
    before = everything(valkey)
    valkey.config_set(setting, value)
    try:
        with pytest.raises(StoreUnavailable, match="Redis"):
            store.save("r1", held.token, {"n": 1})
        with pytest.raises(StoreUnavailable, match="Redis"):
            store.take("r1", "w2", 60, over="w1")
    finally:
        valkey.config_set(setting, 0)
    assert everything(valkey) == before
    store.save("r1", held.token, {"n": 1})


def test_a_server_that_is_not_there_is_told_in_words(kind: str, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="Redis: ConnectionError"):
        KINDS[kind](f"unix://{tmp_path}/none", ttl_seconds=1).load("r1")
    with pytest.raises(StoreUnavailable, match="Redis URL"):
        KINDS[kind]("nonsense", ttl_seconds=1)


def test_no_command_is_sent_twice(kind: str) -> None:
    """Of a command without an answer nobody knows whether it was applied."""
    seen: list[bytes] = []

    def serve(server: socket.socket) -> None:
        while True:
            with suppress(OSError), server.accept()[0] as client:
                while b"EVAL" not in (words := client.recv(1 << 16)) and words:
                    client.sendall(b"+OK\r\n" * words.count(b"CLIENT"))
                seen.append(words)
            if server.fileno() < 0:
                return

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=serve, args=[server])
        thread.start()
        url = f"redis://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(StoreUnavailable, match="Redis: ConnectionError"):
            KINDS[kind](url, ttl_seconds=1).release("r1", 1)
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()
    assert len([words for words in seen if b"EVAL" in words]) == 1


def test_the_next_operation_finds_a_server_that_came_back(
    kind: str, tmp_path: Path, start_valkey: Callable[[Path], Any]
) -> None:
    """And with `appendfsync always` the server has all that it acknowledged."""
    with start_valkey(tmp_path) as url:
        store = KINDS[kind](url, ttl_seconds=1000)
        held = taken(store)
        for n in range(1, 20):
            store.save("r1", held.token, {"n": n})
    with pytest.raises(StoreUnavailable):
        store.save("r1", held.token, {"n": 20})
    with start_valkey(tmp_path):
        found = store.load("r1")
        assert found is not None
        assert (found.document, found.token) == ({"n": 19}, held.token)
        store.save("r1", held.token, {"n": 20})
    store.close()


WRITER = """
import sys
from reference_agent.stores import open_store
store = open_store(sys.argv[1], ttl_seconds=1000)
held = store.take("r1", sys.argv[2], 60, over=sys.argv[3])
document = held.document
print(document["n"], flush=True)
while True:
    document["n"] += 1
    document["m"].append(document["n"])
    store.save("r1", held.token, document)
    print(document["n"], flush=True)
"""
NAMES = {"checkpoint": "redis", "log": "redis-log"}


def test_a_writer_killed_at_any_moment_loses_nothing_it_was_told(
    store: Store, kind: str, valkey_url: str
) -> None:
    """Each life is killed while it saves; the next goes on from what was saved."""
    assert store.create("r1", {"n": 0, "m": []})
    told = 0
    for life in range(8):
        command = [
            sys.executable,
            "-c",
            WRITER,
            NAMES[kind],
            f"w{life}",
            f"w{life - 1}",
        ]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"REDIS_URL": valkey_url},
            stdout=subprocess.PIPE,
            text=True,
        ) as writer:
            assert writer.stdout is not None
            found = int(writer.stdout.readline())
            assert found in (told, told + 1)
            lines = [writer.stdout.readline() for _ in range(11 + 7 * life)]
            writer.kill()
            lines += writer.stdout.readlines()
        told = int(lines[-1])
        held = store.load("r1")
        assert held is not None
        assert held.document["n"] in (told, told + 1)
        assert held.document["m"] == list(range(1, held.document["n"] + 1))


CLAIMANT = """
import sys
from reference_agent.stores import open_store
store = open_store(sys.argv[1], ttl_seconds=1000)
sys.stdin.readline()
for run in range(100):
    held = store.take(f"r{run}", sys.argv[2], 60)
    if held:
        print(run, held.token, flush=True)
"""


def test_of_two_that_claim_at_once_one_has_it(
    store: Store, kind: str, valkey_url: str
) -> None:
    for run in range(100):
        assert store.create(f"r{run}", {})
    claimants = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMANT, NAMES[kind], name],
            cwd=ROOT,
            env=os.environ | {"REDIS_URL": valkey_url},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("w1", "w2")
    ]
    for each in claimants:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    won = [each.communicate()[0].split()[::2] for each in claimants]
    assert sorted(won[0] + won[1], key=int) == [str(run) for run in range(100)]
    owners = {each.run_id: each.owner for each in store.due()}
    assert owners == {
        f"r{run}": name
        for name, runs in zip(("w1", "w2"), won, strict=True)
        for run in runs
    }
