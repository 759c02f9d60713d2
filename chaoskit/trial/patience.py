"""The clock of a trial's limits: it stands still while chaoskit looks at the world.

What a look takes depends on the size of the world and on the machine, and says nothing
about the agent.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Patience:
    """A monotonic clock that can be held; one for each trial."""

    def __init__(self) -> None:
        self._held = 0
        self._since = 0.0
        self._lost = 0.0

    def now(self) -> float:
        """Seconds, of which none has passed while the clock was held."""
        return (self._since if self._held else time.monotonic()) - self._lost

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within it no time passes; several may hold it at once."""
        if not self._held:
            self._since = time.monotonic()
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            if not self._held:
                self._lost += time.monotonic() - self._since
