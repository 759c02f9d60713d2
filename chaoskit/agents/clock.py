"""The wall clock of an agent, which a fault can make jump.

A small library, `clock.c`, is compiled with the machine's own C compiler and preloaded
into the lives whose clock is to be set: they see CLOCK_REALTIME ahead of the real one
by what a file holds, at once and in every process. (libfaketime does the same and more,
but its release 0.9.10, which distributions carry, makes every `clock_nanosleep` to a
moment of the monotonic clock fail, and so Python's `time.sleep`.)

A program that does not load libraries, as a static one, and one that reads the clock
without the C library, as Go's do, cannot be reached so: `governs` tells.
"""

import os
import shlex
import shutil
import struct
import subprocess
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from chaoskit.agents.life import LaunchError

_SOURCE = Path(__file__).with_name("clock.c")
_NANOSECONDS = 1_000_000_000
VARIABLE = "CHAOSKIT_CLOCK"
PRELOAD = "LD_PRELOAD"


class WallClock:
    """A `Clock` for all lives of one launcher; ``folder`` is where its files live."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def set(self, seconds: float) -> None:
        """See `Clock.set`."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", round(seconds * _NANOSECONDS)))

    def variables(self, inherited: str | None = None) -> dict[str, str]:
        """What a life's environment must have; with what is preloaded already.

        Raises `LaunchError` where the library cannot be made.
        """
        libraries = [str(self.library), *([inherited] if inherited else [])]
        return {PRELOAD: ":".join(libraries), VARIABLE: str(self._file)}

    def governs(self, pid: int) -> bool:
        """Whether a process has the library loaded; True for one that is gone."""
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            maps = Path(f"/proc/{pid}/maps").read_text()
            return not maps or str(self.library) in maps
        return True

    @cached_property
    def library(self) -> Path:
        """The library, compiled."""
        library = self._place / "libclock.so"
        compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
        if compiler is None:
            raise LaunchError(
                "`skew` sets the agent's clock by a small library that is compiled on "
                "this machine, and there is no C compiler; install one: apt-get "
                "install gcc libc6-dev"
            )
        line = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE)]
        done = subprocess.run(
            [*line, "-ldl", "-pthread"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LaunchError(
                "the library by which `skew` sets the agent's clock cannot be compiled;"
                " does the compiler have the C library's headers (apt-get install "
                f"libc6-dev)?\n  {shlex.join(line)}\n{done.stderr.strip()}"
            )
        return library

    @cached_property
    def _file(self) -> Path:
        file = self._place / "ahead"
        file.write_bytes(bytes(8))
        return file

    @cached_property
    def _place(self) -> Path:
        if self._folder is None:
            raise LaunchError("this launcher was given no folder for a clock")
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder
