"""What changes the agent's folder: a step each, which is for the gate.

A step has a name, the path that it is about, and is done by a call. Three changes mean
nothing by themselves and are no steps for the gate: times of files, what the kernel
writes back from mapped memory, which it does when it likes, and anything to a file of
shared memory (`chaoskit.world.files.view.is_memory`).
"""

import errno
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chaoskit.wire.fuse import answers
from chaoskit.wire.fuse.requests import Changed, Opcode, Request, Written
from chaoskit.world.files.disk import Disk
from chaoskit.world.files.inode import Inode, Maker
from chaoskit.world.files.looks import attributes, entry, opened
from chaoskit.world.files.view import is_memory

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


class Changes:
    """Reads requests to change a disk. What cannot be done raises OSError."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.answers: Mapping[int, Callable[[Request], Answer]] = {
            Opcode.SETATTR: self._change,
            Opcode.SYMLINK: self._symlink,
            Opcode.MKNOD: lambda r: self._create(r, r.word(), r.names(16)[0]),
            Opcode.MKDIR: self._mkdir,
            Opcode.UNLINK: self._unlink,
            Opcode.RMDIR: self._rmdir,
            Opcode.RENAME: lambda r: self._rename(r, 0, r.names(8)),
            Opcode.RENAME2: lambda r: self._rename(r, r.word(8), r.names(16)),
            Opcode.LINK: self._link,
            Opcode.WRITE: self._write,
            Opcode.FSYNC: self._sync,
            Opcode.FSYNCDIR: self._sync,
            Opcode.CREATE: lambda r: self._create(
                r, r.word(4), r.names(16)[0], opens=True
            ),
        }

    def _change(self, request: Request) -> Answer:
        wanted, inode = Changed.read(request.body), self._disk[request.node]
        if wanted.size is not None:
            self._disk.require_room(wanted.size, len(inode.content))
            return self._step("truncate", inode, lambda: self._alter(inode, wanted))
        if self._owner(inode, wanted) != (inode.mode, inode.uid, inode.gid):
            return self._step("chmod", inode, lambda: self._alter(inode, wanted))
        return self._alter(inode, wanted)

    def _alter(self, inode: Inode, wanted: Changed) -> bytes:
        if wanted.size is not None:
            self._disk.truncate(inode.ino, wanted.size, time.time_ns())
        inode.mode, inode.uid, inode.gid = self._owner(inode, wanted)
        if wanted.mtime is not None:
            inode.mtime = time.time_ns() if wanted.mtime < 0 else wanted.mtime
        return attributes(inode)

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
        more = opened(self._path(request, name)) if opens else b""
        return self._make("create", request, name, mode, more)

    def _mkdir(self, request: Request) -> Step:
        mode = stat.S_IFDIR | stat.S_IMODE(request.word())
        return self._make("mkdir", request, request.names(8)[0], mode)

    def _symlink(self, request: Request) -> Step:
        name, target = request.names()

        def make() -> bytes:
            self._disk.require_room(len(target))
            mode, maker = stat.S_IFLNK | 0o777, _maker(request)
            made = self._disk.make(request.node, name, mode, maker)
            self._disk.write(made.ino, 0, target, maker.now)
            self._disk.sync(made.ino)  # it has no data but its name's
            return entry(made)

        return Step("symlink", self._path(request, name), lambda _: make())

    def _make(
        self, op: str, request: Request, name: bytes, mode: int, more: bytes = b""
    ) -> Step:
        def make() -> bytes:
            made = self._disk.make(request.node, name, mode, _maker(request))
            return entry(made) + more

        return Step(op, self._path(request, name), lambda _: make())

    def _unlink(self, request: Request) -> Step:
        (name,) = request.names()
        remove = self._disk.unlink
        return self._named("unlink", request, name, lambda: remove(request.node, name))

    def _rmdir(self, request: Request) -> Step:
        (name,) = request.names()
        remove = self._disk.rmdir
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
            if how and new[1] in self._disk[new[0]].names:
                raise OSError(errno.EEXIST, new[1])
            self._disk.rename(old, new)
            return b""

        return Step("rename", self._disk.path_of(*new), lambda _: move())

    def _link(self, request: Request) -> Step:
        (name,), ino, folder = request.names(8), request.number(), request.node

        def make() -> bytes:
            return entry(self._disk.link(ino, folder, name))

        return Step("link", self._path(request, name), lambda _: make())

    def _write(self, request: Request) -> Answer:
        written = Written.read(request.body)
        inode = self._disk[request.node]
        end = written.offset + len(written.data)
        self._disk.require_room(end, len(inode.content))

        def write(part: int | None) -> bytes:
            self._disk.write(
                inode.ino, written.offset, written.data[:part], time.time_ns()
            )
            if written.is_synced:
                self._disk.sync(inode.ino)
            return answers.written(len(written.data))

        if written.is_late:
            return write(None)
        path = self._disk.path(inode.ino)
        return Step("write", path, write, len(written.data))

    def _sync(self, request: Request) -> Step:
        inode = self._disk[request.node]
        sync = self._disk.sync
        return self._step("fsync", inode, lambda: _silent(lambda: sync(inode.ino)))

    def _step(self, op: str, inode: Inode, do: Callable[[], bytes]) -> Step:
        return Step(op, self._disk.path(inode.ino), lambda _: do())

    def _path(self, request: Request, name: bytes) -> str:
        return self._disk.path_of(request.node, name)


def _silent(do: Callable[[], None]) -> bytes:
    do()
    return b""


def _maker(request: Request) -> Maker:
    return Maker(request.uid, request.gid, time.time_ns())
