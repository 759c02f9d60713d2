"""Checkpoints in a real Redis: atomic, expiring, renewed, and never retried unseen."""

from collections.abc import Iterator
from contextlib import closing
from socketserver import StreamRequestHandler, TCPServer
from threading import Thread

import pytest
from redis import Redis

from reference_agent.checkpoint import UnreadableCheckpoint
from reference_agent.redis_store import DAY_SECONDS, RedisStore
from reference_agent.store import StoreUnavailable

KEY = "agent:checkpoint:r1"


@pytest.fixture
def store(redis_url: str, redis: Redis) -> Iterator[RedisStore]:
    with closing(RedisStore(redis_url)) as store:
        yield store


def test_a_run_without_a_checkpoint_has_none(store: RedisStore) -> None:
    assert store.load("r1") is None


def test_a_save_is_one_set_with_its_expiry(store: RedisStore, redis: Redis) -> None:
    store.load("r1")  # connected
    with redis.monitor() as monitor:  # type: ignore[no-untyped-call]
        commands = (entry["command"] for entry in monitor.listen())
        store.save("r1", "{}")
        assert next(commands) == f"SET {KEY} {{}} EX {DAY_SECONDS}"
    assert store.load("r1") == b"{}"


def test_every_save_renews_the_expiry(store: RedisStore, redis: Redis) -> None:
    store.save("r1", "1")
    redis.expire(KEY, 5)
    store.save("r1", "2")
    assert DAY_SECONDS - 5 <= redis.ttl(KEY) <= DAY_SECONDS


def test_runs_do_not_share(store: RedisStore) -> None:
    store.save("r1", "1")
    store.save("r2", "2")
    assert (store.load("r1"), store.load("r2")) == (b"1", b"2")


def test_a_key_of_another_kind_is_unreadable_not_absent(
    store: RedisStore, redis: Redis
) -> None:
    redis.rpush(KEY, "x")
    with pytest.raises(UnreadableCheckpoint, match="no string"):
        store.load("r1")


def test_a_server_that_is_away_is_unavailable(redis_url: str) -> None:
    with closing(RedisStore(f"{redis_url}-none")) as store:
        with pytest.raises(StoreUnavailable, match="ConnectionError"):
            store.load("r1")
        with pytest.raises(StoreUnavailable, match="ConnectionError"):
            store.save("r1", "{}")


class LosesReplies(StreamRequestHandler):
    """A server that takes a SET and hangs up."""

    seen = 0

    def handle(self) -> None:
        for line in self.rfile:
            if line == b"SET\r\n":
                type(self).seen += 1
                return
            if line == b"CLIENT\r\n":
                self.wfile.write(b"+OK\r\n")


def test_a_save_whose_answer_is_lost_is_not_sent_again_unseen() -> None:
    with TCPServer(("127.0.0.1", 0), LosesReplies) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        store = RedisStore(f"redis://127.0.0.1:{server.server_address[1]}")
        with closing(store), pytest.raises(StoreUnavailable, match="ConnectionError"):
            store.save("r1", "{}")
        server.shutdown()
    assert LosesReplies.seen == 1


def test_a_refused_write_is_unavailable(store: RedisStore, redis: Redis) -> None:
    redis.config_set("maxmemory", "1")
    try:
        with pytest.raises(StoreUnavailable, match="OutOfMemoryError"):
            store.save("r1", "{}")
    finally:
        redis.config_set("maxmemory", "0")
