"""What is only looked at in the agent's folder, and answered at once."""

from collections.abc import Callable, Mapping

from chaoskit.wire.fuse import answers
from chaoskit.wire.fuse.requests import Opcode, Request
from chaoskit.world.files.disk import Disk
from chaoskit.world.files.inode import Inode
from chaoskit.world.files.room import DISK_BYTES_MAX
from chaoskit.world.files.view import is_memory

_BLOCKS, _FILES = DISK_BYTES_MAX // 4096, 1 << 20


class Looks:
    """Answers from a disk, and the listings that are being read."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._listings: dict[int, list[tuple[bytes, int, int]]] = {}
        self._handles = 0
        self.answers: Mapping[int, Callable[[Request], bytes]] = {
            Opcode.LOOKUP: lambda r: entry(disk.find(r.node, r.names()[0])),
            Opcode.GETATTR: lambda r: attributes(disk[r.node]),
            Opcode.READLINK: lambda r: bytes(disk[r.node].content),
            Opcode.READ: self._read,
            Opcode.STATFS: lambda _: answers.space(_BLOCKS, _FILES),
            Opcode.OPEN: lambda r: opened(disk.path(r.node)),
            Opcode.OPENDIR: self._open_folder,
            Opcode.READDIR: self._list,
            Opcode.RELEASEDIR: self._close_folder,
        }

    def _read(self, request: Request) -> bytes:
        offset, size = request.number(8), request.word(16)
        return bytes(self._disk[request.node].content[offset : offset + size])

    def _open_folder(self, request: Request) -> bytes:
        self._handles += 1
        self._listings[self._handles] = []
        return answers.opened(self._handles)

    def _list(self, request: Request) -> bytes:
        handle, first, room = request.number(), request.number(8), request.word(16)
        if first == 0:
            self._listings[handle] = self._names(self._disk[request.node])
        return answers.listing(self._listings[handle][first:], room, first)

    def _names(self, folder: Inode) -> list[tuple[bytes, int, int]]:
        above = self._disk[folder.home[0] or folder.ino]
        names = [(b".", folder.ino, folder.mode), (b"..", above.ino, above.mode)]
        for name, ino in sorted(folder.names.items()):
            names.append((name, ino, self._disk[ino].mode))
        return names

    def _close_folder(self, request: Request) -> bytes:
        self._listings.pop(request.number(), None)
        return b""


def opened(path: str) -> bytes:
    """The answer to who opens a file."""
    return answers.opened(past_cache=not is_memory(path))


def entry(inode: Inode) -> bytes:
    """The answer to who finds or makes a name."""
    return answers.entry(inode.attributes())


def attributes(inode: Inode) -> bytes:
    """The answer to who looks at a file or changes it."""
    return answers.attributes(inode.attributes())
