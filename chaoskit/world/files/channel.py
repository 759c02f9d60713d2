"""The line to the kernel: requests come in, each is answered once, at any time.

**Who dies waiting.** A process that is killed inside a file operation stays until the
operation is answered, and whoever reaps it waits with it. So the answer must come after
the signal and before the reaping: the kernel tells of a signal to a waiting thread by
an INTERRUPT, and if SIGKILL is among its signals then (proc(5)), the request is
answered with EIO. The thread meets its signal on the way out of the kernel, and never
runs an instruction of its program again, so nobody sees that answer.

**Who stops waiting.** A process that is stopped, too, stops on the way out only. What
was done already is answered then, and it stops with the answer in its hands.

Any other signal interrupts nothing, as on a disk; but the kernel tells of one signal
only for each request, so from then on the thread is looked at now and then.
"""

import asyncio
import errno
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from chaoskit.wire.fuse.answers import failure, reply, welcome
from chaoskit.wire.fuse.requests import REQUEST_BYTES_MAX, UNANSWERED, Opcode, Request

_AGAIN_SECONDS = 0.005
_PENDING = (b"SigPnd", b"ShdPnd")


class Call:
    """A request that waits for its answer.

    ``result`` is the answer once it is known; it may be withheld all the same.
    """

    def __init__(self, request: Request, device: "Channel") -> None:
        self.request = request
        self.result: bytes | OSError | None = None
        self.is_answered = False
        self._device = device

    def answer(self, result: bytes | OSError) -> None:
        """Let the caller go on, with a payload or an error; once is enough."""
        if self.is_answered:
            return
        self.is_answered = True
        unique = self.request.unique
        if isinstance(result, OSError):
            number = result.errno or errno.EIO
            self._device.send(unique, failure(unique, number))
        else:
            self._device.send(unique, reply(unique, result))

    def let_go(self) -> bool:
        """Answer a caller that will not, or not now, run on; whether it was one."""
        signals = pending_signals(self.request.pid)
        if signals is None or signal.SIGKILL in signals:
            self.answer(OSError(errno.EIO, "its caller is dead"))
        elif signal.SIGSTOP in signals and self.result is not None:
            self.answer(self.result)
        return self.is_answered


class Channel:
    """A mounted device, served in the running loop until it is closed."""

    def __init__(self, device: int, serve: Callable[[Call], None]) -> None:
        self._device = device
        self._serve = serve
        self._calls: dict[int, Call] = {}
        self._buffer = memoryview(bytearray(REQUEST_BYTES_MAX))
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(device, self._read)

    def close(self) -> None:
        """Serve no more; all who wait get an error, and so does who comes later."""
        if self._device < 0:
            return
        self._loop.remove_reader(self._device)
        self._calls.clear()
        os.close(self._device)
        self._device = -1

    def send(self, unique: int, message: list[bytes]) -> None:
        """Write an answer; its caller may be gone, and the mount too."""
        self._calls.pop(unique, None)
        if self._device >= 0:
            with suppress(OSError):
                os.writev(self._device, message)

    def _read(self) -> None:
        try:
            size = os.readv(self._device, [self._buffer])
        except BlockingIOError:
            return
        except OSError as error:
            # Whoever sent it has given up before we saw it; or the mount is gone.
            if error.errno not in (errno.ENOENT, errno.EINTR):
                self.close()
            return
        self._take(Request.read(self._buffer[:size]))

    def _take(self, request: Request) -> None:
        call = Call(request, self)
        if request.opcode == Opcode.INTERRUPT:
            self._interrupted(request.number())
        elif request.opcode == Opcode.INIT:
            call.answer(welcome(request))
        elif request.opcode not in UNANSWERED:
            self._calls[request.unique] = call
            self._serve(call)

    def _interrupted(self, unique: int) -> None:
        call = self._calls.get(unique)
        if call is not None and not call.is_answered and not call.let_go():
            # Nobody tells of a second signal: see the module's docstring.
            self._loop.call_later(_AGAIN_SECONDS, self._interrupted, unique)


def pending_signals(thread: int) -> set[int] | None:
    """The signals that a thread has yet to meet; None where it is gone."""
    told = _status(thread)
    if told is None:
        return None
    masks = [int(told[name], 16) for name in _PENDING]
    return {n for n in range(1, 65) if any(mask & 1 << (n - 1) for mask in masks)}


def process_of(thread: int) -> int:
    """The process that a thread is of; itself where it is gone."""
    told = _status(thread)
    return thread if told is None else int(told[b"Tgid"])


def _status(thread: int) -> dict[bytes, bytes] | None:
    try:
        lines = Path(f"/proc/{thread}/status").read_bytes().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return {name: rest for name, _, rest in (line.partition(b":") for line in lines)}
