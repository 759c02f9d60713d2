"""A gentle end: SIGTERM and SIGINT ask for it, and each move looks before it begins.

Nothing is interrupted: the call in hand is made, its result is saved, the run is let
go, and whoever resumes it has nothing to be in doubt about. A second signal, or
SIGKILL, ends the process at once, and that must be just as safe.
"""

import signal
from threading import Event
from types import FrameType


class Stop:
    """Whether this process has been asked to end; `asked_by` is the signal's number."""

    def __init__(self) -> None:
        self.asked_by = 0
        self._asked = Event()

    def listen(self) -> None:
        """From now on take both signals as a request."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    @property
    def is_asked(self) -> bool:
        """Whether it is time to end."""
        return self._asked.is_set()

    def nap(self, seconds: float) -> bool:
        """Rest for so long; False if we were asked to end before it was over."""
        return not self._asked.wait(max(0.0, seconds))

    def _ask(self, number: int, _: FrameType | None) -> None:
        self.asked_by = number
        signal.signal(number, signal.SIG_DFL)
        self._asked.set()
