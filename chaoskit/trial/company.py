"""The lives that are open at one time, and which of them a message comes from."""

from chaoskit.gate import Endpoint
from chaoskit.trial.living import Living


class Company:
    """See `chaoskit.gate.Whose`. Asked only where more than one life is open."""

    def __init__(self) -> None:
        self._open: dict[int, Living] = {}

    def add(self, living: Living) -> None:
        """A life has begun."""
        self._open[living.number] = living

    def remove(self, life: int) -> None:
        """Nothing that still comes from it counts."""
        self._open.pop(life, None)

    def get(self, life: int) -> Living | None:
        """The life, or None where it has ended while its message was still held."""
        return self._open.get(life)

    @property
    def left(self) -> tuple[Living, ...]:
        """Those whose children go on without them."""
        return tuple(each for each in self._open.values() if each.left is not None)

    def others(self, life: int) -> tuple[Living, ...]:
        """Those that are open beside a life: paused ones, children that were left."""
        return tuple(each for each in self._open.values() if each.number != life)

    def connection(self, client: Endpoint, server: Endpoint) -> int | None:
        """The life that holds the client's end of a connection."""
        for life, living in self._open.items():
            if living.process.is_peer(client, server):
                return life
        return None

    def process(self, pid: int) -> int | None:
        """The life that a process is of."""
        for life, living in self._open.items():
            if pid in living.process.pids():
                return life
        return None
