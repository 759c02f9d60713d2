"""Five places to keep runs, behind one interface (`base`); `open_store` picks one.

| name        | a run is                                                | durable by  |
|-------------|---------------------------------------------------------|-------------|
| `redis`     | a key with the whole document                           | appendfsync |
| `redis-log` | a list: a snapshot, then an event for each change       | appendfsync |
| `sqlite`    | a row in `agent.db`                                     | synchronous |
| `postgres`  | a row in a table                                        | the WAL     |
| `files`     | a log of events in a folder, beside its last snapshot   | fsync       |

No other module of the agent knows one store from another.
"""

from collections.abc import Callable

from reference_agent.settings import address, folder
from reference_agent.stores.base import Store

DAY_SECONDS = 24 * 60 * 60
REDIS = ("redis", "rediss", "unix")


def _redis(ttl_seconds: int) -> Store:
    from reference_agent.stores.redis_snapshots import RedisSnapshots

    return RedisSnapshots(address("REDIS_URL", *REDIS), ttl_seconds=ttl_seconds)


def _redis_log(ttl_seconds: int) -> Store:
    from reference_agent.stores.redis_log import RedisLog

    return RedisLog(address("REDIS_URL", *REDIS), ttl_seconds=ttl_seconds)


def _sqlite(_: int) -> Store:
    from reference_agent.stores.sqlite import SqliteStore

    return SqliteStore(folder("CHAOSKIT_STATE_DIR") / "agent.db")


def _postgres(_: int) -> Store:
    from reference_agent.stores.postgres import PostgresStore

    return PostgresStore(address("DATABASE_URL", "postgresql", "postgres"))


def _files(_: int) -> Store:
    from reference_agent.stores.files import FileStore

    return FileStore(folder("CHAOSKIT_STATE_DIR"))


STORES: dict[str, Callable[[int], Store]] = {
    "redis": _redis,
    "redis-log": _redis_log,
    "sqlite": _sqlite,
    "postgres": _postgres,
    "files": _files,
}
"""Each imports what it needs, and nothing of the others."""


def open_store(name: str, *, ttl_seconds: int = DAY_SECONDS) -> Store:
    """The store of that name, at the address that the environment has for it.

    Raises WrongSetting.
    """
    return STORES[name](ttl_seconds)
