"""A port for a whole campaign, with a listening socket of its own for each life.

The address that an agent stores stays true, and no connection passes from one life to
the next: closing a listening socket resets what nobody had accepted on it.
"""

import socket

LOOPBACK = "127.0.0.1"
_BACKLOG = 128


class Listener:
    """One port on the loopback interface.

    A socket that is bound and never listens holds the port while no life is open, so
    that nothing else on the machine is given it.
    """

    def __init__(self) -> None:
        self._hold = _bound(0)
        self._current: socket.socket | None = None
        self.port: int = self._hold.getsockname()[1]

    def renew(self) -> socket.socket:
        """A fresh listening socket on the port; the one before it is closed.

        Whoever serves on a socket stops serving before it asks for the next.
        """
        fresh = _bound(self.port)
        # Not listening yet: some kernels may hand a closing queue on to a neighbour.
        self.drop()
        fresh.listen(_BACKLOG)
        self._current = fresh
        return fresh

    def drop(self) -> None:
        """Close the listening socket; connections are refused until the next one."""
        if self._current is not None:
            self._current.close()
            self._current = None

    def close(self) -> None:
        """Give the port back."""
        self.drop()
        self._hold.close()


def _bound(port: int) -> socket.socket:
    fresh = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    fresh.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    fresh.bind((LOOPBACK, port))
    return fresh
