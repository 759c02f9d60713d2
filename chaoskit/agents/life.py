"""What a life is to the layers above: a command, a handle on it, an exit."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class LaunchError(Exception):
    """A life could not be started. Its text says what was tried, and what to do."""


@dataclass(frozen=True)
class Command:
    """What to start, and where.

    A relative `argv[0]` with a slash is taken from `cwd`, one without is looked up
    on the PATH of `env`. `env` is the whole environment: nothing is added to it. The
    output files are appended to, and created for their owner only.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdout: Path
    stderr: Path


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
        """
        ...

    async def close(self) -> None:
        """Kills what is still alive of the lives it started, and its own process."""
        ...
