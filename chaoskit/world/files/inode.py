"""What a disk is made of: inodes, and the changes to them that are not safe yet."""

import stat
from dataclasses import dataclass, field

from chaoskit.wire.fuse.answers import Attributes


@dataclass(frozen=True, slots=True)
class Change:
    """Bytes put at an offset of a file, or (no data) its end moved there."""

    order: int
    offset: int
    data: bytes | None

    def make(self, content: bytearray) -> None:
        """Do to a content what was done to the file."""
        hole = self.offset - len(content)
        if hole > 0:
            content.extend(bytes(hole))
        if self.data is None:
            del content[self.offset :]
        else:
            content[self.offset : self.offset + len(self.data)] = self.data


@dataclass(slots=True)
class Inode:
    """A file, a folder or a symbolic link; ``home`` is where it was last put."""

    ino: int
    mode: int
    uid: int
    gid: int
    mtime: int
    home: tuple[int, bytes]
    nlink: int = 1
    content: bytearray = field(default_factory=bytearray)
    safe_content: bytearray = field(default_factory=bytearray)
    unsynced: list[Change] = field(default_factory=list)
    names: dict[bytes, int] = field(default_factory=dict)
    safe_names: dict[bytes, int] = field(default_factory=dict)

    @property
    def is_folder(self) -> bool:
        """Whether it holds names."""
        return stat.S_ISDIR(self.mode)

    def attributes(self) -> Attributes:
        """What `stat` shows of it."""
        return Attributes(
            *(self.ino, self.mode, len(self.content), self.nlink),
            *(self.uid, self.gid, self.mtime),
        )


@dataclass(frozen=True, slots=True)
class Renaming:
    """Names of folders, with what each stands for from now on, changed as one."""

    order: int
    names: tuple[tuple[int, bytes, int | None], ...]

    @property
    def folders(self) -> set[int]:
        """The folders in which something changed."""
        return {folder for folder, _, _ in self.names}


@dataclass(frozen=True)
class Maker:
    """Whose a new inode is, and when it was made (nanoseconds since the epoch)."""

    uid: int = 0
    gid: int = 0
    now: int = 0


def put(names: dict[bytes, int], name: bytes, ino: int | None) -> None:
    """Let a name stand for an inode, or (None) for nothing."""
    if ino is None:
        names.pop(name, None)
    else:
        names[name] = ino


def as_text(name: bytes) -> str:
    """A name for people and addresses; what is no text is written as escapes."""
    return name.decode(errors="backslashreplace")
