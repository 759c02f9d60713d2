"""What the kernel asks of a file system in user space, and how it is answered.

The messages are those of ``linux/fuse.h``, version 7.31 (Linux 5.4), in the machine's
byte order: a header with the operation and the inode, then a body. One read of the
device gives one request whole; one write answers it. There are no sockets in here.

Two things are left to the kernel by never being offered: locks, which it keeps itself
for all who use the same mount, and delayed writes, which would hide and merge the
writes of an agent. Files are opened past its page cache (`opened`), since it cuts a
write that goes through it, here and there, by what happens to be in it. What is mapped
goes through it all the same and is written back late, and then it says so
(`Written.is_late`).
"""

import os
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

ROOT = 1
"""The inode of the folder itself."""
_PAGE = 4096
_PAGES = 256
WRITE_BYTES_MAX = (_PAGES - 1) * _PAGE
"""A longer write comes as several. A page less than what fits, as memory is cut too."""
REQUEST_BYTES_MAX = _PAGES * _PAGE
"""What the buffer for a request must hold."""

_MAJOR, _MINOR = 7, 31
_BIG_WRITES, _MAX_PAGES, _MORE_FLAGS = 1 << 5, 1 << 22, 1 << 30
_MAPPED_THOUGH_DIRECT = 1 << 4  # of the flags that came later, from Linux 6.6 on
_DIRECT = 1 << 0
_READAHEAD_BYTES = 1 << 17

_HEADER_IN = struct.Struct("=IIQQIIIHH")
_HEADER_OUT = struct.Struct("=IiQ")
_ATTR = struct.Struct("=QQQQQQIIIIIIIIII")
_INIT_OUT = struct.Struct("=IIIIHHIIHHI28x")
_DIRENT = struct.Struct("=QQII")
_SETATTR = struct.Struct("=I4xQQQQQQIIIIIIII")
_WRITE_IN = struct.Struct("=QQIIQII")


class Opcode(IntEnum):
    """The operations that mean something here."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    READLINK = 5
    SYMLINK = 6
    MKNOD = 8
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    CREATE = 35
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    RENAME2 = 45


UNANSWERED = frozenset({Opcode.FORGET, Opcode.BATCH_FORGET, Opcode.INTERRUPT})
"""Requests that have no reply."""


class Request(NamedTuple):
    """One request; ``unique`` names it, ``pid`` is the thread that waits for it."""

    opcode: int
    unique: int
    node: int
    uid: int
    gid: int
    pid: int
    body: bytes

    @classmethod
    def read(cls, message: memoryview) -> "Request":
        """Take apart what one read of the device gave."""
        _, opcode, unique, node, uid, gid, pid, _, _ = _HEADER_IN.unpack_from(message)
        body = bytes(message[_HEADER_IN.size :])
        return cls(opcode, unique, node, uid, gid, pid, body)

    def number(self, at: int = 0) -> int:
        """A 64-bit number of the body."""
        return int.from_bytes(self.body[at : at + 8], sys.byteorder)

    def word(self, at: int = 0) -> int:
        """A 32-bit number of the body."""
        return int.from_bytes(self.body[at : at + 4], sys.byteorder)

    def names(self, at: int = 0) -> list[bytes]:
        """The names that end the body."""
        return self.body[at:].split(b"\0")[:-1]


class Written(NamedTuple):
    """A request to write."""

    offset: int
    data: bytes
    is_late: bool
    """It comes from mapped memory, when the kernel likes, not from a system call."""
    is_synced: bool
    """The file is open with O_SYNC or O_DSYNC."""

    @classmethod
    def read(cls, body: bytes) -> "Written":
        """Take apart the body of a WRITE."""
        _, offset, size, how, _, flags, _ = _WRITE_IN.unpack_from(body)
        data = body[_WRITE_IN.size : _WRITE_IN.size + size]
        return cls(offset, data, bool(how & 1), bool(flags & os.O_DSYNC))


class Changed(NamedTuple):
    """A request to change attributes; None where one is to stay."""

    size: int | None
    mode: int | None
    uid: int | None
    gid: int | None
    mtime: int | None
    """Nanoseconds; -1 for now."""

    @classmethod
    def read(cls, body: bytes) -> "Changed":
        """Take apart the body of a SETATTR."""
        valid, _, size, _, _, mtime, _, _, nsec, _, mode, _, uid, gid, _ = (
            _SETATTR.unpack_from(body)
        )
        moment = -1 if valid & 1 << 8 else mtime * 10**9 + nsec
        return cls(
            size if valid & 1 << 3 else None,
            mode if valid & 1 << 0 else None,
            uid if valid & 1 << 1 else None,
            gid if valid & 1 << 2 else None,
            moment if valid & 1 << 5 else None,
        )


@dataclass(frozen=True, slots=True)
class Attributes:
    """What `stat` shows."""

    ino: int
    mode: int
    size: int
    nlink: int
    uid: int
    gid: int
    mtime: int
    """Nanoseconds since the epoch; the other times are the same."""


def attributes(shown: Attributes) -> bytes:
    """The answer to GETATTR and SETATTR: nothing of it may be kept by the kernel."""
    return bytes(16) + _packed(shown)


def entry(shown: Attributes) -> bytes:
    """The answer to what finds or makes a name."""
    return struct.pack("=QQ24x", shown.ino, 0) + _packed(shown)


def opened(handle: int = 0, *, past_cache: bool = False) -> bytes:
    """The answer to OPEN and OPENDIR, and what follows the entry in that to CREATE.

    Before Linux 6.6 a file that is open ``past_cache`` cannot be mapped to be shared.
    """
    return struct.pack("=QII", handle, _DIRECT if past_cache else 0, 0)


def written(size: int) -> bytes:
    """The answer to WRITE."""
    return struct.pack("=II", size, 0)


def listing(names: Iterable[tuple[bytes, int, int]], room: int, first: int) -> bytes:
    """The answer to READDIR: names with inode and mode, from the first on.

    Args:
        names: what is listed, from number ``first`` on.
        room: how many bytes the answer may have.
        first: the number of the first.
    """
    parts: list[bytes] = []
    for number, (name, ino, mode) in enumerate(names, first + 1):
        each = _DIRENT.pack(ino, number, len(name), mode >> 12) + name
        each += bytes(-len(each) % 8)
        room -= len(each)
        if room < 0:
            break
        parts.append(each)
    return b"".join(parts)


def space(blocks: int, files: int) -> bytes:
    """The answer to STATFS: so many blocks of 4096 bytes, all of them free."""
    return struct.pack(
        "=QQQQQIIII24x", blocks, blocks, blocks, files, files, 4096, 255, 4096, 0
    )


def welcome(request: Request) -> bytes:
    """The answer to INIT, by which kernel and file system agree."""
    offered, more = request.word(12), request.word(16)
    flags = offered & (_BIG_WRITES | _MAX_PAGES | _MORE_FLAGS)
    return _INIT_OUT.pack(
        *(_MAJOR, _MINOR, _READAHEAD_BYTES, flags),
        *(12, 9, WRITE_BYTES_MAX, 1, _PAGES, 0, more & _MAPPED_THOUGH_DIRECT),
    )


def reply(unique: int, payload: bytes) -> list[bytes]:
    """An answer, to be written at once."""
    return [_HEADER_OUT.pack(_HEADER_OUT.size + len(payload), 0, unique), payload]


def failure(unique: int, number: int) -> list[bytes]:
    """An errno as the answer, to be written at once."""
    return [_HEADER_OUT.pack(_HEADER_OUT.size, -number, unique)]


def _packed(shown: Attributes) -> bytes:
    seconds, rest = divmod(shown.mtime, 10**9)
    return _ATTR.pack(
        *(shown.ino, shown.size, -(-shown.size // 512)),
        *(seconds, seconds, seconds, rest, rest, rest),
        *(shown.mode, shown.nlink, shown.uid, shown.gid, 0, 4096, 0),
    )
