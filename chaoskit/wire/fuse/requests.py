"""What the kernel asks of a file system; the protocol is told in the package."""

import os
import struct
import sys
from enum import IntEnum
from typing import NamedTuple

ROOT = 1
"""The inode of the folder itself."""
PAGE = 4096
PAGES = 256
WRITE_BYTES_MAX = (PAGES - 1) * PAGE
"""A longer write comes as several. A page less than what fits, as memory is cut too."""
REQUEST_BYTES_MAX = PAGES * PAGE
"""What the buffer for a request must hold."""

_HEADER_IN = struct.Struct("=IIQQIIIHH")
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
