"""Each of the five stores passes the suite that users have for theirs."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from chaoskit.world.postgres.own import OwnServer
from reference_agent.conformance import (
    ClockConformance,
    DamageConformance,
    ExpiryConformance,
    FolderConformance,
    NoticeConformance,
    StoreConformance,
)
from reference_agent.stores.files import FileStore
from reference_agent.stores.postgres import PostgresStore
from reference_agent.stores.redis_log import RedisLog
from reference_agent.stores.redis_snapshots import RedisSnapshots
from reference_agent.stores.sqlite import SqliteStore

MakeDatabase = Callable[[OwnServer], str]

HOUR = 3600
FOREIGN = "[1, 2]"


def spoilt(data: bytes, how: str) -> bytes:
    """The bytes without their end, or with others in the middle, or quite others."""
    middle = len(data) // 2
    mixed = data[:middle] + b'"\xf0"' + data[middle + 3 :]
    return {"torn": data[:-9], "spoilt": mixed, "foreign": FOREIGN.encode()}[how]


class TestRedisSnapshots(StoreConformance, ExpiryConformance, DamageConformance):
    @pytest.fixture
    def open_store(self, valkey_url: str, valkey: "Redis"):
        return partial(RedisSnapshots, valkey_url, ttl_seconds=HOUR)

    @pytest.fixture
    def open_expiring(self, valkey_url: str, valkey: "Redis"):
        return partial(RedisSnapshots, valkey_url, ttl_seconds=1)

    @pytest.fixture
    def damage(self, valkey: "Redis"):
        def damage(run_id: str, how: str) -> Callable[[], object]:
            key = f"agent:checkpoint:{run_id}"
            text = valkey.get(key)
            assert isinstance(text, bytes)
            valkey.set(key, spoilt(text, how), keepttl=True)
            return lambda: valkey.dump(key)

        return damage


class TestRedisLog(StoreConformance, ExpiryConformance, DamageConformance):
    @pytest.fixture
    def open_store(self, valkey_url: str, valkey: "Redis"):
        return partial(RedisLog, valkey_url, ttl_seconds=HOUR, snapshot_every=5)

    @pytest.fixture
    def open_expiring(self, valkey_url: str, valkey: "Redis"):
        return partial(RedisLog, valkey_url, ttl_seconds=1)

    @pytest.fixture
    def damage(self, valkey: "Redis"):
        def damage(run_id: str, how: str) -> Callable[[], object]:
            key = f"agent:log:{run_id}"
            if how == "foreign":
                valkey.delete(key)
                valkey.hset(key, "document", "of somebody else")
            else:
                at = -1 if how == "torn" else 1
                event = valkey.lindex(key, at)
                assert isinstance(event, bytes)
                valkey.lset(key, at, spoilt(event, how))
            return lambda: valkey.dump(key)

        return damage


class TestSqlite(
    StoreConformance, ClockConformance, DamageConformance, FolderConformance
):
    @pytest.fixture
    def folder(self, tmp_path: Path):
        (tmp_path / "data").mkdir()
        return tmp_path / "data"

    @pytest.fixture
    def open_store(self, folder: Path):
        return partial(SqliteStore, folder / "agent.db")

    @pytest.fixture
    def damage(self, folder: Path):
        def sql(statement: str, *given: object):
            with closing(sqlite3.connect(folder / "agent.db")) as db, db:
                return db.execute(statement, given).fetchone()

        def damage(run_id: str, how: str) -> Callable[[], object]:
            which = "FROM agent_runs WHERE run_id = ?"
            (data,) = sql(f"SELECT CAST(document AS BLOB) {which}", run_id)
            change = "UPDATE agent_runs SET document = ? WHERE run_id = ?"
            sql(change, spoilt(data, how), run_id)
            return lambda: sql(f"SELECT * {which}", run_id)

        return damage


class TestPostgres(StoreConformance, DamageConformance, NoticeConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def database(cls, postgres_server: OwnServer, make_database: MakeDatabase):
        """One for all: to make one takes longer than most tests."""
        return make_database(postgres_server)

    @pytest.fixture
    def open_store(self, database: str):
        with psycopg.connect(database) as db:
            db.execute("DROP TABLE IF EXISTS agent_leases, agent_runs")
        return partial(PostgresStore, database)

    @pytest.fixture
    def damage(self, database: str):
        def damage(run_id: str, how: str) -> Callable[[], object]:
            which = "FROM agent_runs WHERE run_id = %s"
            with psycopg.connect(database) as db:
                found = db.execute(f"SELECT document {which}".encode(), [run_id])
                ((text,),) = found.fetchall()
                change = "UPDATE agent_runs SET document = %s WHERE run_id = %s"
                data = spoilt(text.encode(), how).replace(b"\xf0", b"?").decode()
                db.execute(change.encode(), [data, run_id])
            return partial(self._row, database, f"SELECT * {which}", run_id)

        return damage

    def _row(self, url: str, statement: str, run_id: str) -> object:
        with psycopg.connect(url) as db:
            return db.execute(statement.encode(), [run_id]).fetchall()


class TestFiles(
    StoreConformance,
    ClockConformance,
    DamageConformance,
    FolderConformance,
    NoticeConformance,
):
    @pytest.fixture
    def folder(self, tmp_path: Path):
        (tmp_path / "data").mkdir()
        return tmp_path / "data"

    @pytest.fixture
    def open_store(self, folder: Path):
        return partial(FileStore, folder, snapshot_every=3)

    @pytest.fixture
    def damage(self, folder: Path):
        def damage(run_id: str, how: str) -> Callable[[], object]:
            place = folder / f"{run_id}.run"
            log = max(place.glob("*.log"), key=lambda path: int(path.stem))
            first, rest = log.read_bytes().split(b"\n", 1)
            if how == "torn":  # its last line alone would be what was never kept
                log.write_bytes(spoilt(first, how))
            else:
                log.write_bytes(spoilt(first, how) + b"\n" + rest)
            return lambda: {path: path.read_bytes() for path in place.iterdir()}

        return damage
