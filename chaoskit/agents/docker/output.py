"""Copies what a container writes to the two files of its life, late by no line.

A container writes into two pipes. Its engine reads them and passes everything on in the
stream that we are attached to (Docker Engine API, "Attach to a container", "Stream
format": one byte for which of the two, three of nothing, four for the length, then so
many bytes). So what a life wrote before a message may still be on its way when the
message is here. Whoever must know pushes a mark into the pipes behind it, and waits
until that comes out at our end: pipes and stream keep their order. The mark never
reaches the files, and the life cannot see it. It takes root to push one.

At a life's end the stream ends behind its last byte.
"""

import asyncio
import os
import secrets
import socket
import struct
from contextlib import suppress
from pathlib import Path

import psutil

from chaoskit.agents.life import LaunchError

_STDOUT, _STDERR = 1, 2
_HEADER = struct.Struct(">BxxxL")
_CHUNK = 65536
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND
_GONE = (FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess, BrokenPipeError)


class _Stream:
    """One of the two outputs: its file, and the marks that are on their way."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, _APPEND, 0o600)
        self._marks: dict[bytes, asyncio.Future[None]] = {}
        self._held = b""

    def expect(self, mark: bytes) -> "asyncio.Future[None]":
        """Done once the mark has come, or nothing more can."""
        self._marks[mark] = asyncio.get_running_loop().create_future()
        return self._marks[mark]

    def take(self, data: bytes) -> None:
        self._held += data
        for mark in list(self._marks):
            before, found, behind = self._held.partition(mark)
            if found:
                self._held = before + behind
                self._came(mark)
        if not self._marks:  # else the end of what is held may be half a mark
            self._write()

    def forget(self, mark: bytes) -> None:
        """The mark could not be sent."""
        if mark in self._marks:
            self._came(mark)
        self.take(b"")

    def end(self) -> None:
        self._write()
        for mark in list(self._marks):
            self._came(mark)
        os.close(self._file)

    def _came(self, mark: bytes) -> None:
        arrival = self._marks.pop(mark)
        if not arrival.done():
            arrival.set_result(None)

    def _write(self) -> None:
        while self._held:
            self._held = self._held[os.write(self._file, self._held) :]


class ContainerOutput:
    """Made in the running loop, of the stream of a container that has not started."""

    def __init__(self, line: socket.socket, stdout: Path, stderr: Path) -> None:
        self._line = line
        self._streams = {_STDOUT: _Stream(stdout), _STDERR: _Stream(stderr)}
        self._copying = asyncio.create_task(self._copy())

    async def ended(self) -> None:
        """Returns once everything that was written is in the files."""
        await asyncio.shield(self._copying)

    async def abandon(self) -> None:
        """Nothing is to be had of a container that never ran."""
        self._copying.cancel()
        await asyncio.wait([self._copying])

    async def caught_up(self, pid: int) -> None:
        """Returns once all that the container has written until now is in the files.

        `pid` is its first process. Where that has pointed an output elsewhere, there is
        nothing to wait for. Raises `LaunchError` for want of rights.
        """
        if self._copying.done():
            return
        for number, stream in self._streams.items():
            mark = f"\0{secrets.token_hex(16)}\0".encode()
            arrival = stream.expect(mark)
            try:
                await _push(mark, pid, number)
            except BaseException as error:
                stream.forget(mark)
                if isinstance(error, PermissionError):
                    raise LaunchError(_UNSURE) from error
                if not isinstance(error, _GONE):
                    raise
            await arrival

    async def _copy(self) -> None:
        loop = asyncio.get_running_loop()
        pending = bytearray()
        try:
            with suppress(ConnectionError):
                while data := await loop.sock_recv(self._line, _CHUNK):
                    pending += data
                    self._take_frames(pending)
        finally:
            self._line.close()
            for stream in self._streams.values():
                stream.end()

    def _take_frames(self, pending: bytearray) -> None:
        while len(pending) >= _HEADER.size:
            number, length = _HEADER.unpack_from(pending)
            end = _HEADER.size + length
            if len(pending) < end:
                return
            self._streams[number].take(bytes(pending[_HEADER.size : end]))
            del pending[:end]


_UNSURE = (
    "a life in a container has reached a crossing at which its log is to be read, and"
    " only root can be sure that the engine has passed all of it on; run chaoskit as"
    " root, or use the strategy `sweep`"
)


async def _push(mark: bytes, pid: int, number: int) -> None:
    """Writes the mark into one of the container's pipes, after what is in it."""
    path = f"/proc/{pid}/fd/{number}"
    if not _is_the_engines(path, pid):
        raise FileNotFoundError(path)
    pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    try:
        while not _fits(pipe, mark):
            await _writable(pipe)
    finally:
        os.close(pipe)


def _is_the_engines(path: str, pid: int) -> bool:
    """Whether the other end of the pipe is with the process that keeps the container.

    Else it is one of the agent's own, which must not be written to.
    """
    keeper = f"/proc/{psutil.Process(pid).ppid()}/fd"
    pipe = os.readlink(path)
    with suppress(FileNotFoundError):
        return any(os.readlink(f"{keeper}/{fd}") == pipe for fd in os.listdir(keeper))
    return False


def _fits(pipe: int, mark: bytes) -> bool:
    try:
        os.write(pipe, mark)  # whole or not at all: it is shorter than PIPE_BUF
    except BlockingIOError:
        return False
    return True


async def _writable(pipe: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(pipe, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(pipe)
