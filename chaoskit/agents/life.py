"""What a life is to the layers above: a command, a handle on it, an exit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class LaunchError(Exception):
    """A life could not be started. Its text says what was tried, and what to do."""


Endpoint = tuple[str, int]
"""The address of one end of a connection: host and port."""


class Clock(Protocol):
    """The wall clock of lives; the monotonic one is never touched."""

    def set(self, seconds: float) -> None:
        """Sets it so many seconds ahead of the real one, at once."""
        ...

    def governs(self, pid: int) -> bool:
        """Whether it is the clock that a process sees; True for one that is gone."""
        ...


@dataclass(frozen=True)
class Command:
    """What to start, and where.

    A relative `argv[0]` with a slash is taken from `cwd`, one without is looked up
    on the PATH of `env`. `env` is the whole environment: nothing is added to it but
    the variables of `inherit`. The output files are appended to, and created for their
    owner only.

    `inherit` names file descriptors of this process that the life gets a copy of: each
    variable holds the number that it has in the life. `memory_bytes` is how much memory
    each process of the life may have, `file_bytes` how large a file it may write, its
    output too. `clock`: its clock may be set, by the `clock` of its launcher.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdout: Path
    stderr: Path
    inherit: Mapping[str, int] = field(default_factory=dict)
    memory_bytes: int | None = None
    file_bytes: int | None = None
    clock: bool = False


@dataclass(frozen=True)
class Exit:
    """How the root process of a life ended: a `code` or a `signal`, never both.

    `orphans` counts the descendants that were alive when the root ended or was
    killed; they are killed and reaped with it. Helpers that would have gone by
    themselves a moment later, such as multiprocessing's resource tracker, count too.
    """

    code: int | None
    signal: int | None
    orphans: int


class Life(Protocol):
    """One running agent: a root process, its group, and all that descends from it."""

    @property
    def pid(self) -> int:
        """The root's process id, which is also its group and its session."""
        ...

    async def wait(self) -> Exit:
        """Returns once the root has ended and nothing of the life is alive.

        The life is cleared away whether anybody waits or not; any number may wait.
        """
        ...

    async def kill(self) -> Exit:
        """Sends SIGKILL to group and descendants at once, then waits as `wait` does.

        Where the root had ended before, the exit is the one it chose.
        """
        ...

    async def kill_one(self) -> Exit:
        """Sends SIGKILL to the root alone; returns its exit once it is dead.

        Its descendants live on until `kill`, and so long `wait` does not return; those
        that are alive count as orphans. In a container, where nobody outlives the first
        process, it is `kill`.
        """
        ...

    async def signal(self, number: int) -> None:
        """Sends a signal to the root's group; nothing where the life has ended.

        The group, not the root alone, as a terminal does on Ctrl-C and systemd does to
        all of a service. In a container to its first process, as `docker stop` does.
        """
        ...

    async def pause(self) -> None:
        """Stops every process of the life where it is; returns once none runs."""
        ...

    async def go_on(self) -> None:
        """Lets a life that was paused run on."""
        ...

    async def written(self) -> None:
        """Returns once all that the life has written until now is in its files."""
        ...

    def is_peer(self, client: Endpoint, server: Endpoint) -> bool:
        """Whether the client's end of a connection is the life's, by both addresses."""
        ...

    def pids(self) -> tuple[int, ...]:
        """Every process of the life that can be seen from here, the root first."""
        ...


class Launcher(Protocol):
    """Starts lives."""

    async def warm(self) -> None:
        """Does what can be done before the first life; `start` does it if need be.

        Raises `LaunchError` where no life could be started at all.
        """
        ...

    async def start(self, command: Command) -> Life:
        """Starts a life; returns before the loop runs anything else once it runs.

        So no message of the life can be seen by a service before its handle is here.
        Raises `LaunchError`; nothing is left of the attempt then, nor if cancelled.
        A life in a container may be handed over before it runs, and raises it later, in
        `wait`, where its program is missing.
        """
        ...

    def clock(self) -> Clock:
        """The clock of the lives that are started with `Command.clock`.

        Raises `LaunchError` where a life's clock cannot be set.
        """
        ...

    async def close(self) -> None:
        """Kills what is still alive of the lives it started, and its own process."""
        ...
