"""Processes that share nothing with the test, and can be killed at any moment.

They are forked from a process that has never opened a store: a fork of the test itself
would take its connections and locks along. Each has a channel to the test: what it says
is pickled, and its end is the channel's end.
"""

import os
import pickle
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Self

PATIENCE = 60.0
"""Seconds after which a process that says nothing is not expected to any more."""

_LENGTH = 4
_HINT = (
    "what `open_store` gives is pickled for other processes: let it be a class or a"
    " function of a module that they can import, or a `partial` of one"
)


class Ended(Exception):
    """The process has said all it ever will."""


@dataclass(frozen=True)
class _Trouble:
    text: str


class Child:
    """A process or thread that does a deed, seen from the test."""

    def __init__(self, channel: Connection, pid: int) -> None:
        self._channel = channel
        self._pid = pid

    def say(self, thing: object) -> None:
        """Hand the deed what it waits for."""
        self._channel.send(thing)

    def hear(self, patience: float = PATIENCE) -> Any:
        """What it says next. Raises Ended; AssertionError if the deed failed."""
        first_to_speak([self], patience)
        try:
            said = self._channel.recv()
        except (EOFError, OSError) as error:
            raise Ended from error
        if isinstance(said, _Trouble):
            raise AssertionError(f"a worker failed:\n{said.text}")
        return said

    def fileno(self) -> int:
        """Of its channel, for who waits for several."""
        return self._channel.fileno()

    def rest(self) -> list[Any]:
        """All that it says until it ends."""
        heard = []
        while True:
            try:
                heard.append(self.hear())
            except Ended:
                return heard

    def kill(self) -> list[Any]:
        """End it at once; what it had said and nobody had heard."""
        os.kill(self._pid, signal.SIGKILL)
        return self.rest()


def first_to_speak(
    children: Sequence[Child], patience: float = PATIENCE
) -> Sequence[Child]:
    """Those who have something to say, once it is at least one."""
    speak = wait([child.fileno() for child in children], patience)
    if not speak:
        raise AssertionError(f"a worker said nothing for {patience} seconds")
    return [child for child in children if child.fileno() in speak]


class Nursery:
    """A process that forks others. Its children end with it."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        places = [place or os.getcwd() for place in [*sys.path, ""]]
        fd = theirs.fileno()
        self._process = subprocess.Popen(
            # Not by "-m": all there would be of a module that nobody here knows.
            [sys.executable, "-c", f"import {__name__} as n; n.serve({fd})"],
            pass_fds=[fd],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
            start_new_session=True,
        )
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._control.close()

    def start(self, deed: Callable[..., None], *arguments: object) -> Child:
        """Do it in a process of its own, with its end of the channel as the first."""
        try:
            job = pickle.dumps((deed, arguments))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(f"{error}; {_HINT}") from error
        ours, theirs = socket.socketpair()
        message = len(job).to_bytes(_LENGTH, "big")
        socket.send_fds(self._control, [message], [theirs.fileno()])
        theirs.close()
        self._control.sendall(job)
        child = Child(Connection(ours.detach()), 0)
        child._pid = child.hear()
        return child


def perform(channel: Connection, deed: Callable[..., None], *arguments: object) -> None:
    """Do it; what goes wrong is the last thing that the channel hears."""
    with channel, suppress(BrokenPipeError):  # the test has failed without us
        try:
            deed(channel, *arguments)
        except Exception:
            channel.send(_Trouble(traceback.format_exc()))


def serve(handle: int) -> None:
    """Be the process that forks others, until the test closes its end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    control = socket.socket(fileno=handle)
    while True:
        message, handles, _, _ = socket.recv_fds(control, _LENGTH, 1)
        if not message:
            os.killpg(0, signal.SIGKILL)
        job = _exactly(control, int.from_bytes(message, "big"))
        with Connection(handles[0]) as channel:
            _fork(channel, job)


def _fork(channel: Connection, job: bytes) -> None:
    try:
        # Here and not in the child, which then finds all modules imported.
        deed, arguments = pickle.loads(job)
    except Exception:
        channel.send(os.getpid())
        channel.send(_Trouble(f"{_HINT}\n{traceback.format_exc()}"))
        return
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        channel.send(os.getpid())
        perform(channel, deed, *arguments)
        os._exit(0)


def _exactly(control: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        got += control.recv(size - len(got))
    return got
