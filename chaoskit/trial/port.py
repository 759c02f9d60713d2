"""A port that a process of the agent is to listen on before others are started."""

import asyncio
import socket
from dataclasses import dataclass

from chaoskit.agents import LaunchError
from chaoskit.world.listener import LOOPBACK


@dataclass(frozen=True)
class Port:
    """One on the loopback interface."""

    number: int

    def must_be_free(self) -> None:
        """Nobody else may answer there.

        Raises:
            LaunchError: somebody does.
        """
        with socket.socket() as probe:
            if probe.connect_ex((LOOPBACK, self.number)) == 0:
                raise LaunchError(
                    f"port {self.number}, by which the manifest's `ready` knows a "
                    "process, is taken: something listens there before it is started. "
                    "End that, or name another port"
                )

    async def answers(self) -> bool:
        """Whether a connection is accepted."""
        try:
            _, writer = await asyncio.open_connection(LOOPBACK, self.number)
        except OSError:
            return False
        writer.close()
        return True
