"""A life as a fork of a warm parent, for Python agents with slow imports.

The parent imports once; a life is then up in a few milliseconds, a real process with a
pid, a group, an environment, arguments, output files and exit status of its own. What
a fork cannot give, as against a new interpreter, is the agent's affair:

- what its modules did while they were imported is done, once, and shared: a connection
  or a file opened then is the same one in every life. `random` is reseeded in a fork;
  other generators that were seeded then (numpy's) repeat themselves.
- what an interpreter reads from its environment only as it starts (PYTHONHASHSEED and
  the like, TZ, the locale) it has read from the launcher's, not from the life's.
- its /proc/PID/environ and cmdline are the parent's.
- modules must leave no thread running once they are imported.

Lives whose clock may be set have a warm parent of their own, which was started with
that clock: what loads at the start of a process cannot be had later.
"""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

from chaoskit.agents.clock import PRELOAD, WallClock
from chaoskit.agents.family import Family
from chaoskit.agents.life import Command
from chaoskit.agents.nursery import Nursery
from chaoskit.agents.parent import Origin

_PYTHON = re.compile(r"(python|pypy)[\d.]*$")
_OPTIONS_WITH_A_WORD = {"-W", "-X", "--check-hash-based-pycs"}


class ForkLauncher:
    """A `Launcher` whose lives call a function, `module:function`, of a warm parent.

    A command's `argv` is not run: it is what the function finds in `sys.argv`. What it
    returns, or raises, is the exit as with `sys.exit`. The parent gets `env` as it
    imports, so the campaign's variable should be in it; lives see their own only. It
    runs in `cwd`, from where modules are imported, as with `python -m`. `folder` is
    where the files of its clock live; without one, no life's clock can be set.
    """

    def __init__(
        self,
        python: str,
        preload: tuple[str, ...],
        call: str,
        cwd: Path,
        env: Mapping[str, str],
        folder: Path | None = None,
    ) -> None:
        self._python = python
        self._origin = Origin((python,), (call, *preload), cwd, env)
        self._nursery = Nursery(self._origin)
        self._clocked: Nursery | None = None
        self._clock = WallClock(folder)

    async def warm(self) -> None:
        """Imports; raises `LaunchError` with the end of the traceback."""
        await self._nursery.warm()

    async def start(self, command: Command) -> Family:
        """See `Launcher.start`."""
        argv = seen_by_program(command.argv, self._python)
        command = dataclasses.replace(command, argv=argv)
        if not command.clock:
            return await self._nursery.start(command)
        clock = self._clock.variables(command.env.get(PRELOAD))
        command = dataclasses.replace(command, env={**command.env, **clock})
        return await self._with_clock().start(command)

    def clock(self) -> WallClock:
        """See `Launcher.clock`."""
        return self._clock

    async def close(self) -> None:
        """See `Launcher.close`."""
        await self._nursery.close()
        if self._clocked is not None:
            await self._clocked.close()

    def _with_clock(self) -> Nursery:
        if self._clocked is None:
            env = self._origin.env
            clock = self._clock.variables(env.get(PRELOAD))
            origin = dataclasses.replace(self._origin, env={**env, **clock})
            self._clocked = Nursery(origin)
        return self._clocked


def seen_by_program(argv: tuple[str, ...], python: str) -> tuple[str, ...]:
    """The `sys.argv` that a command gives: without the interpreter and its options.

    `python -m package a` gives `package a`, where the real one holds a path instead.
    """
    if not argv or not (argv[0] == python or _PYTHON.search(argv[0])):
        return argv
    words = list(argv[1:])
    while words and words[0].startswith("-") and words[0] != "-c":
        option = words.pop(0)
        if option == "-m":
            break
        if option in _OPTIONS_WITH_A_WORD:
            del words[:1]
    if words[:1] == ["-c"]:
        del words[1:2]
    return tuple(words)
