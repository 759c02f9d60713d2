"""What each request to the agent's folder means: an answer at once, or a step.

A step changes what is there, and is for the gate: it has a name, the path that it is
about, and is done by a call. All else (looking, reading, opening) is answered at once.
So are three changes that mean nothing by themselves: times of files, what the kernel
writes back from mapped memory, which it does when it likes, and anything to a file of
shared memory (`files_view.is_memory`).
"""

import errno
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass

from chaoskit.wire import fuse
from chaoskit.wire.fuse import Changed, Opcode, Request, Written
from chaoskit.world.files.disk import Disk
from chaoskit.world.files.inode import Inode, Maker
from chaoskit.world.files.view import is_memory

_BLOCKS, _FILES = 1 << 24, 1 << 20
_NO_REPLACE = 1


@dataclass(frozen=True)
class Step:
    """A change: ``do`` makes it, of a torn write only that many bytes of it."""

    op: str
    path: str
    do: Callable[[int | None], bytes]
    pieces: int | None = None
    """The bytes of a write."""

    @property
    def means_nothing(self) -> bool:
        """Whether it is done without the gate."""
        return is_memory(self.path)


Answer = bytes | Step


class Desk:
    """Answers requests from a disk. What cannot be done raises OSError."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self._listings: dict[int, list[tuple[bytes, int, int]]] = {}
        self._handles = 0
        self._answers: dict[int, Callable[[Request], Answer]] = {
            Opcode.LOOKUP: lambda r: _entry(disk.find(r.node, r.names()[0])),
            Opcode.GETATTR: lambda r: _attributes(disk[r.node]),
            Opcode.SETATTR: self._change,
            Opcode.READLINK: lambda r: bytes(disk[r.node].content),
            Opcode.SYMLINK: self._symlink,
            Opcode.MKNOD: lambda r: self._create(r, r.word(), r.names(16)[0]),
            Opcode.MKDIR: self._mkdir,
            Opcode.UNLINK: self._unlink,
            Opcode.RMDIR: self._rmdir,
            Opcode.RENAME: lambda r: self._rename(r, 0, r.names(8)),
            Opcode.RENAME2: lambda r: self._rename(r, r.word(8), r.names(16)),
            Opcode.LINK: self._link,
            Opcode.READ: self._read,
            Opcode.WRITE: self._write,
            Opcode.STATFS: lambda _: fuse.space(_BLOCKS, _FILES),
            Opcode.FSYNC: self._sync,
            Opcode.FSYNCDIR: self._sync,
            Opcode.OPEN: lambda r: _opened(disk.path(r.node)),
            Opcode.CREATE: lambda r: self._create(
                r, r.word(4), r.names(16)[0], opens=True
            ),
            Opcode.OPENDIR: self._open_folder,
            Opcode.READDIR: self._list,
            Opcode.RELEASEDIR: self._close_folder,
        }

    def take(self, request: Request) -> Answer:
        """The answer to a request, or the step that it asks for.

        What is not known is ENOSYS: the kernel does it in its own way then, and does
        not ask again.
        """
        known = self._answers.get(request.opcode)
        if known is None:
            raise OSError(errno.ENOSYS, request.opcode)
        return known(request)

    def _change(self, request: Request) -> Answer:
        wanted, inode = Changed.read(request.body), self.disk[request.node]
        if wanted.size is not None:
            return self._step("truncate", inode, lambda: self._alter(inode, wanted))
        if self._owner(inode, wanted) != (inode.mode, inode.uid, inode.gid):
            return self._step("chmod", inode, lambda: self._alter(inode, wanted))
        return self._alter(inode, wanted)

    def _alter(self, inode: Inode, wanted: Changed) -> bytes:
        if wanted.size is not None:
            self.disk.truncate(inode.ino, wanted.size, time.time_ns())
        inode.mode, inode.uid, inode.gid = self._owner(inode, wanted)
        if wanted.mtime is not None:
            inode.mtime = time.time_ns() if wanted.mtime < 0 else wanted.mtime
        return _attributes(inode)

    def _owner(self, inode: Inode, wanted: Changed) -> tuple[int, int, int]:
        mode = inode.mode if wanted.mode is None else wanted.mode
        return (
            stat.S_IFMT(inode.mode) | stat.S_IMODE(mode),
            inode.uid if wanted.uid is None else wanted.uid,
            inode.gid if wanted.gid is None else wanted.gid,
        )

    def _create(
        self, request: Request, mode: int, name: bytes, *, opens: bool = False
    ) -> Step:
        if not stat.S_ISREG(mode):
            raise OSError(errno.EPERM, "only files, folders and symbolic links")
        more = _opened(self._path(request, name)) if opens else b""
        return self._make("create", request, name, mode, more)

    def _mkdir(self, request: Request) -> Step:
        mode = stat.S_IFDIR | stat.S_IMODE(request.word())
        return self._make("mkdir", request, request.names(8)[0], mode)

    def _symlink(self, request: Request) -> Step:
        name, target = request.names()

        def make() -> bytes:
            mode, maker = stat.S_IFLNK | 0o777, _maker(request)
            made = self.disk.make(request.node, name, mode, maker)
            self.disk.write(made.ino, 0, target, maker.now)
            self.disk.sync(made.ino)  # it has no data but its name's
            return _entry(made)

        return Step("symlink", self._path(request, name), lambda _: make())

    def _make(
        self, op: str, request: Request, name: bytes, mode: int, more: bytes = b""
    ) -> Step:
        def make() -> bytes:
            made = self.disk.make(request.node, name, mode, _maker(request))
            return _entry(made) + more

        return Step(op, self._path(request, name), lambda _: make())

    def _unlink(self, request: Request) -> Step:
        (name,) = request.names()
        remove = self.disk.unlink
        return self._named("unlink", request, name, lambda: remove(request.node, name))

    def _rmdir(self, request: Request) -> Step:
        (name,) = request.names()
        remove = self.disk.rmdir
        return self._named("rmdir", request, name, lambda: remove(request.node, name))

    def _named(
        self, op: str, request: Request, name: bytes, do: Callable[[], None]
    ) -> Step:
        return Step(op, self._path(request, name), lambda _: _silent(do))

    def _rename(self, request: Request, how: int, names: list[bytes]) -> Step:
        if how & ~_NO_REPLACE:
            raise OSError(errno.EINVAL, "no exchange of names")
        old, new = (request.node, names[0]), (request.number(), names[1])

        def move() -> bytes:
            if how and new[1] in self.disk[new[0]].names:
                raise OSError(errno.EEXIST, new[1])
            self.disk.rename(old, new)
            return b""

        return Step("rename", self.disk.path_of(*new), lambda _: move())

    def _link(self, request: Request) -> Step:
        (name,), ino, folder = request.names(8), request.number(), request.node

        def make() -> bytes:
            return _entry(self.disk.link(ino, folder, name))

        return Step("link", self._path(request, name), lambda _: make())

    def _read(self, request: Request) -> bytes:
        offset, size = request.number(8), request.word(16)
        return bytes(self.disk[request.node].content[offset : offset + size])

    def _write(self, request: Request) -> Answer:
        written = Written.read(request.body)
        inode = self.disk[request.node]

        def write(part: int | None) -> bytes:
            self.disk.write(
                inode.ino, written.offset, written.data[:part], time.time_ns()
            )
            if written.is_synced:
                self.disk.sync(inode.ino)
            return fuse.written(len(written.data))

        if written.is_late:
            return write(None)
        path = self.disk.path(inode.ino)
        return Step("write", path, write, len(written.data))

    def _sync(self, request: Request) -> Step:
        inode = self.disk[request.node]
        sync = self.disk.sync
        return self._step("fsync", inode, lambda: _silent(lambda: sync(inode.ino)))

    def _open_folder(self, request: Request) -> bytes:
        self._handles += 1
        self._listings[self._handles] = []
        return fuse.opened(self._handles)

    def _list(self, request: Request) -> bytes:
        handle, first, room = request.number(), request.number(8), request.word(16)
        if first == 0:
            self._listings[handle] = self._names(self.disk[request.node])
        return fuse.listing(self._listings[handle][first:], room, first)

    def _names(self, folder: Inode) -> list[tuple[bytes, int, int]]:
        above = self.disk[folder.home[0] or folder.ino]
        names = [(b".", folder.ino, folder.mode), (b"..", above.ino, above.mode)]
        for name, ino in sorted(folder.names.items()):
            names.append((name, ino, self.disk[ino].mode))
        return names

    def _close_folder(self, request: Request) -> bytes:
        self._listings.pop(request.number(), None)
        return b""

    def _step(self, op: str, inode: Inode, do: Callable[[], bytes]) -> Step:
        return Step(op, self.disk.path(inode.ino), lambda _: do())

    def _path(self, request: Request, name: bytes) -> str:
        return self.disk.path_of(request.node, name)


def _silent(do: Callable[[], None]) -> bytes:
    do()
    return b""


def _opened(path: str) -> bytes:
    return fuse.opened(past_cache=not is_memory(path))


def _entry(inode: Inode) -> bytes:
    return fuse.entry(inode.attributes())


def _attributes(inode: Inode) -> bytes:
    return fuse.attributes(inode.attributes())


def _maker(request: Request) -> Maker:
    return Maker(request.uid, request.gid, time.time_ns())
