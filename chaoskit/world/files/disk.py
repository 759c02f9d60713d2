"""A disk with a page cache, as a pure model: what is there, and what would be left.

Each file has its content and the content that is safe; each folder has its names and
the names that are safe. The rules are those that fsync(2) and rename(2) promise, and
no more, since an agent should run on any file system that keeps to them:

- data is safe once its file was synced, or written through O_SYNC or O_DSYNC;
- a name is safe once its folder was synced: syncing a new file does not save its name,
  and neither does a rename of it, nor does an unlink stay done;
- a rename between folders, and all that it rests on, becomes safe as one, whichever of
  the two is synced;
- what is safe of a name and not of its data is an empty file, or the older content.

ext4 and XFS often keep more than that (a sync of a new file saves its name there),
which "All File Systems Are Not Created Equal" (Pillai et al., OSDI 2014) calls a
vulnerability to rely on. SQLite does not: it syncs the folder of a new journal, and in
``synchronous=EXTRA`` after the journal's end too. Owner, mode and time of a file are
safe at once; nothing here turns on them.
"""

import errno
import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from chaoskit.wire.fuse.requests import ROOT
from chaoskit.world.files.inode import Change, Inode, Maker, Renaming, as_text, put
from chaoskit.world.files.room import require_room

NAME_BYTES_MAX = 255


@dataclass
class Disk:
    """See the module's docstring. What cannot be done raises OSError with its errno."""

    inodes: dict[int, Inode] = field(default_factory=dict)
    renamings: list[Renaming] = field(default_factory=list)
    """What was done to names and is not safe, in order."""
    order: int = 0
    newest: int = ROOT

    def __post_init__(self) -> None:
        if not self.inodes:
            root = Inode(
                ROOT, stat.S_IFDIR | 0o777, os.getuid(), os.getgid(), 0, (0, b"")
            )
            self.inodes[ROOT] = root

    def __getitem__(self, ino: int) -> Inode:
        try:
            return self.inodes[ino]
        except KeyError:
            raise OSError(errno.ESTALE, f"no inode {ino}") from None

    def find(self, folder: int, name: bytes) -> Inode:
        """What a name stands for."""
        ino = self[folder].names.get(name)
        if ino is None:
            raise OSError(errno.ENOENT, name)
        return self[ino]

    def make(self, folder: int, name: bytes, mode: int, maker: Maker) -> Inode:
        """A new file, folder or link, empty."""
        self._require_free(folder, name)
        self.newest += 1
        made = Inode(
            *(self.newest, mode, maker.uid, maker.gid, maker.now, (folder, name))
        )
        self.inodes[made.ino] = made
        self._name((folder, name, made.ino))
        return made

    def write(self, ino: int, offset: int, data: bytes, now: int = 0) -> None:
        """Put bytes at an offset."""
        self._change(ino, offset, data, now)

    def truncate(self, ino: int, size: int, now: int = 0) -> None:
        """Move the end of a file."""
        self._change(ino, size, None, now)

    def require_room(self, size: int, held: int = 0) -> None:
        """See `chaoskit.world.files.room`."""
        require_room(self.inodes.values(), size, held)

    def sync(self, ino: int) -> None:
        """All that was written to a file is safe; of a folder, its names are."""
        inode = self[ino]
        if inode.is_folder:
            self._sync_names(ino)
        for change in inode.unsynced:
            change.make(inode.safe_content)
        inode.unsynced.clear()

    def link(self, ino: int, folder: int, name: bytes) -> Inode:
        """One more name for a file."""
        self._require_free(folder, name)
        inode = self[ino]
        if inode.is_folder:
            raise OSError(errno.EPERM, name)
        inode.nlink += 1
        self._name((folder, name, ino))
        return inode

    def unlink(self, folder: int, name: bytes) -> None:
        """Take a file's name away."""
        inode = self.find(folder, name)
        if inode.is_folder:
            raise OSError(errno.EISDIR, name)
        inode.nlink -= 1
        self._name((folder, name, None))

    def rmdir(self, folder: int, name: bytes) -> None:
        """Take an empty folder away."""
        inode = self.find(folder, name)
        if not inode.is_folder:
            raise OSError(errno.ENOTDIR, name)
        self._require_empty(inode, name)
        inode.nlink = 0
        self._name((folder, name, None))

    def rename(self, old: tuple[int, bytes], new: tuple[int, bytes]) -> None:
        """Move a name, over one that is there already too, as one step."""
        moved = self.find(*old)
        ino = self[new[0]].names.get(new[1])
        if ino == moved.ino:
            return
        if ino is not None:
            self._make_way(self[ino], moved, new[1])
        self._name((*old, None), (*new, moved.ino))
        moved.home = new

    def path(self, ino: int) -> str:
        """Where an inode is, or was when it had a name: ``runs/state.json``."""
        inode = self[ino]
        if ino == ROOT:
            return "."
        folder, name = self._home(inode)
        above = "" if folder == ROOT else f"{self.path(folder)}/"
        return above + as_text(name)

    def path_of(self, folder: int, name: bytes) -> str:
        """The path of a name in a folder."""
        return (
            as_text(name) if folder == ROOT else f"{self.path(folder)}/{as_text(name)}"
        )

    def reached(self) -> set[int]:
        """The inodes that have a name, or had one when they were last safe."""
        found: set[int] = set()
        todo = [ROOT]
        for renaming in self.renamings:
            todo += [*renaming.folders, *(ino for _, _, ino in renaming.names if ino)]
        while todo:
            ino = todo.pop()
            if ino not in found:
                found.add(ino)
                inode = self[ino]
                todo += [*inode.names.values(), *inode.safe_names.values()]
        return found

    def drop_nameless(self, kept: Collection[int] = ()) -> None:
        """Forget the inodes that nobody can reach any more."""
        reached = self.reached() | set(kept)
        self.inodes = {ino: self.inodes[ino] for ino in self.inodes if ino in reached}

    def files(self) -> Iterator[tuple[str, Inode]]:
        """Everything that has a name but the root, sorted by path."""
        yield from sorted(self._below(ROOT, ""), key=lambda found: found[0])

    def _below(self, folder: int, above: str) -> Iterator[tuple[str, Inode]]:
        for name, ino in self[folder].names.items():
            path, inode = above + as_text(name), self[ino]
            yield path, inode
            if inode.is_folder:
                yield from self._below(ino, f"{path}/")

    def _change(self, ino: int, offset: int, data: bytes | None, now: int) -> None:
        inode = self[ino]
        self.require_room(offset + len(data or b""), len(inode.content))
        self.order += 1
        change = Change(self.order, offset, data)
        change.make(inode.content)
        inode.unsynced.append(change)
        inode.mtime = now

    def _name(self, *names: tuple[int, bytes, int | None]) -> None:
        self.order += 1
        renaming = Renaming(self.order, names)
        for folder, name, ino in names:
            put(self[folder].names, name, ino)
        self.renamings.append(renaming)

    def _sync_names(self, folder: int) -> None:
        safe: list[Renaming] = []
        folders = {folder}
        for renaming in reversed(self.renamings):
            if renaming.folders & folders:
                safe.append(renaming)
                folders |= renaming.folders
        for renaming in reversed(safe):
            self.save(renaming)
        done = {renaming.order for renaming in safe}
        self.renamings = [r for r in self.renamings if r.order not in done]

    def save(self, renaming: Renaming) -> None:
        """Make a change of names safe."""
        for folder, name, ino in renaming.names:
            put(self[folder].safe_names, name, ino)

    def _make_way(self, gone: Inode, moved: Inode, name: bytes) -> None:
        if gone.is_folder and not moved.is_folder:
            raise OSError(errno.EISDIR, name)
        if moved.is_folder and not gone.is_folder:
            raise OSError(errno.ENOTDIR, name)
        self._require_empty(gone, name)
        gone.nlink -= 1

    def _home(self, inode: Inode) -> tuple[int, bytes]:
        folder, name = inode.home
        if self.inodes[folder].names.get(name) == inode.ino or not inode.nlink:
            return inode.home
        for other in self.inodes.values():
            for each, ino in other.names.items():
                if ino == inode.ino:
                    inode.home = other.ino, each
        return inode.home

    def _require_free(self, folder: int, name: bytes) -> None:
        if name in self[folder].names:
            raise OSError(errno.EEXIST, name)
        if len(name) > NAME_BYTES_MAX:
            raise OSError(errno.ENAMETOOLONG, name)

    def _require_empty(self, inode: Inode, name: bytes) -> None:
        if inode.names:
            raise OSError(errno.ENOTEMPTY, name)
