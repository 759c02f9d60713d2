"""How much the disk holds: it is kept in memory, holes included, and so is a small one.

Like a real one it refuses what does not fit before anything of it is done: EFBIG where
a file would be too long, ENOSPC where all of them would. What was deleted takes none.
"""

import errno
from collections.abc import Iterable

from chaoskit.world.files.inode import Inode

FILE_BYTES_MAX = 256 << 20
DISK_BYTES_MAX = 512 << 20


def require_room(inodes: Iterable[Inode], size: int, held: int = 0) -> None:
    """Refuse that a file of so many bytes, which holds some already, gets that size."""
    if size <= held:
        return
    if size > FILE_BYTES_MAX:
        told = f"{size} bytes; a file may have {FILE_BYTES_MAX}"
        raise OSError(errno.EFBIG, told)
    used = sum(len(inode.content) for inode in inodes if inode.nlink)
    if used + size - held > DISK_BYTES_MAX:
        raise OSError(errno.ENOSPC, f"the disk holds {DISK_BYTES_MAX} bytes")
