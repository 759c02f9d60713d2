"""A life as a new program: the launch that suits every agent in every language."""

import dataclasses
import os
import sys
from pathlib import Path

from chaoskit.agents.clock import PRELOAD, WallClock
from chaoskit.agents.family import Family
from chaoskit.agents.life import Command
from chaoskit.agents.nursery import Nursery
from chaoskit.agents.parent import Origin


class ProcessLauncher:
    """A `Launcher` that execs the command.

    Use it in the worker's loop; lives it started may run side by side. `folder` is
    where the files of its clock live; without one, no life's clock can be set.
    """

    def __init__(self, folder: Path | None = None) -> None:
        # Isolated and without site: it needs nothing, and is up in 10 ms.
        python = (sys.executable, "-I", "-S")
        self._nursery = Nursery(Origin(python, (), Path("/"), dict(os.environ)))
        self._clock = WallClock(folder)

    async def warm(self) -> None:
        """See `Launcher.warm`."""
        await self._nursery.warm()

    async def start(self, command: Command) -> Family:
        """See `Launcher.start`."""
        if command.clock:
            clock = self._clock.variables(command.env.get(PRELOAD))
            command = dataclasses.replace(command, env={**command.env, **clock})
        return await self._nursery.start(command)

    def clock(self) -> WallClock:
        """See `Launcher.clock`."""
        return self._clock

    async def close(self) -> None:
        """See `Launcher.close`."""
        await self._nursery.close()
