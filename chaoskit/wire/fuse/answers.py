"""How the kernel is answered; the protocol is told in the package."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from chaoskit.wire.fuse.requests import PAGES, WRITE_BYTES_MAX, Request

_MAJOR, _MINOR = 7, 31
_BIG_WRITES, _MAX_PAGES, _MORE_FLAGS = 1 << 5, 1 << 22, 1 << 30
_MAPPED_THOUGH_DIRECT = 1 << 4  # of the flags that came later, from Linux 6.6 on
_DIRECT = 1 << 0
_READAHEAD_BYTES = 1 << 17

_HEADER_OUT = struct.Struct("=IiQ")
_ATTR = struct.Struct("=QQQQQQIIIIIIIIII")
_INIT_OUT = struct.Struct("=IIIIHHIIHHI28x")
_DIRENT = struct.Struct("=QQII")


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
        *(12, 9, WRITE_BYTES_MAX, 1, PAGES, 0, more & _MAPPED_THOUGH_DIRECT),
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
