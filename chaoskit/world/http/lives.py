"""The servers of one service, and the port that they share."""

from chaoskit.gate import Gate
from chaoskit.world.http.message import Handler, Reply
from chaoskit.world.http.server import LifeServer
from chaoskit.world.listener import LifePort


class HttpLives:
    """The servers of one service, one for each open life, all on one port.

    Bodies above ``body_bytes_max`` get the ``too_large`` reply. A handler that raises
    is a bug of ours and must not look like the agent's: the connection is cut, and the
    next call of a method here raises it again.
    """

    def __init__(self, body_bytes_max: int, too_large: Reply) -> None:
        self._limits = body_bytes_max, too_large
        self._bugs: list[Exception] = []
        self._port: LifePort | None = None
        self._open: dict[int, LifeServer] = {}

    async def start(self) -> int:
        """Take a port; returns its number."""
        self._port = LifePort()
        return self._port.port

    async def open(self, life: int, handler: Handler, gate: Gate) -> None:
        """Serve a life, beside those that are open."""
        assert self._port is not None, "start comes first"
        self._report()
        served = LifeServer(handler, gate, self._bugs, *self._limits)
        await self._port.open(life, served, gate.whose)
        self._open[life] = served

    async def close(self, life: int) -> None:
        """Abort every connection of a life; handlers that run go on to their end."""
        if self._port is not None and life in self._open:
            self._port.close(life)
            self._open.pop(life).abort()
        self._report()

    async def close_all(self) -> None:
        """Abort every connection of every life."""
        for life in tuple(self._open):
            await self.close(life)

    async def stop(self) -> None:
        """Close everything and give the port back."""
        try:
            await self.close_all()
        finally:
            if self._port is not None:
                self._port.stop()

    def _report(self) -> None:
        if self._bugs:
            raise self._bugs.pop(0)
