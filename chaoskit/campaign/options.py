"""What a campaign is told besides its scenario, and what it tells while it runs."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from chaoskit.model.manifest import Store
from chaoskit.model.schedule import Schedule
from chaoskit.world.servers import DATABASE_URL_VARIABLE, REDIS_URL_VARIABLE

JOBS_MAX = 8


GIVEN_SERVERS: Mapping[Store, str] = {
    Store.REDIS: REDIS_URL_VARIABLE,
    Store.POSTGRES: DATABASE_URL_VARIABLE,
}
"""The variable that names a server of the user's, by the store that it is for."""


def given_server(store: Store) -> str | None:
    """The URL of the user's own server for a store, if there is one."""
    return os.environ.get(GIVEN_SERVERS[store]) if store in GIVEN_SERVERS else None


def jobs_by_default(store: Store) -> int:
    """Workers for this machine: one a core, within reason.

    A Redis server that was given is emptied before each trial, so it serves one worker.
    """
    if store is Store.REDIS and given_server(store):
        return 1
    return min(len(os.sched_getaffinity(0)), JOBS_MAX)


@dataclass(frozen=True)
class Options:
    """What the command line adds to a scenario.

    ``overrides`` are its words that took the place of what the scenario says, for the
    replay command; ``schedules`` and ``times`` are what `replay` runs. A closure that
    is ``thorough`` runs every recovery to its end; ``deep`` is how many kills it
    follows, without it as many as there are.
    """

    out: Path
    jobs: int = 1
    thorough: bool = False
    deep: int | None = None
    server_url: str | None = None
    schedules: tuple[Schedule, ...] = ()
    times: int = 1
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True)
class Progress:
    """How far a campaign is: trials done and known to come, findings so far."""

    done: int
    total: int
    findings: int
    stage: str


Listener = Callable[[Progress], None]
