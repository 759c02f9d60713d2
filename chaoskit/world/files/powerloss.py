"""What a loss of power leaves of a disk.

========== ==========================================================================
``all``    Nothing of what was not synced is left. The plain one.
``data``   The names were just being saved, the data was not: a file that was renamed
           into its place before it was synced is there and empty.
``names``  The data was saved, the names were not.
``some``   The older half of the changes was saved, in the order in which they were
           made, as by a kernel that writes back behind the agent's back.
========== ==========================================================================
"""

import heapq
import pickle
from enum import StrEnum

from chaoskit.world.files.disk import Disk
from chaoskit.world.files.inode import Change, Inode, Renaming


class Loss(StrEnum):
    """What is lost of that which was not synced."""

    ALL = "all"
    DATA = "data"
    NAMES = "names"
    SOME = "some"


def lose_power(disk: Disk, loss: Loss = Loss.ALL) -> None:
    """Bring a disk to what is left after a loss of power."""
    if loss is Loss.SOME:
        _save_older_half(disk)
    if loss is Loss.DATA:
        _save_names(disk, disk.renamings)
    if loss is Loss.NAMES:
        for inode in disk.inodes.values():
            _save_data(inode, inode.unsynced)
    disk.renamings.clear()
    for inode in disk.inodes.values():
        _forget_unsynced(inode)
    disk.drop_nameless()
    _count_names(disk)


def is_all_safe(disk: Disk) -> bool:
    """Whether a loss of power would change nothing that has a name."""
    return not disk.renamings and not any(inode.unsynced for _, inode in disk.files())


def copy(disk: Disk) -> Disk:
    """Another disk with the same in it, but for what nobody can reach."""
    return unpack(pack(disk))


def pack(disk: Disk) -> bytes:
    """All of a disk, but for what only a process that is gone could reach."""
    reached = disk.reached()
    inodes = {ino: inode for ino, inode in disk.inodes.items() if ino in reached}
    return pickle.dumps((inodes, disk.renamings, disk.order, disk.newest))


def unpack(packed: bytes) -> Disk:
    """What `pack` packed."""
    return Disk(*pickle.loads(packed))


def _save_older_half(disk: Disk) -> None:
    reached = [disk[ino] for ino in disk.reached()]
    changes = [(c.order, c, inode) for inode in reached for c in inode.unsynced]
    total = len(changes) + len(disk.renamings)
    orders = [order for order, _, _ in changes] + [r.order for r in disk.renamings]
    last = max(heapq.nsmallest(total // 2, orders), default=0)
    for _, change, inode in sorted(changes, key=lambda found: found[0]):
        if change.order <= last:
            _save_data(inode, [change])
    _save_names(disk, [each for each in disk.renamings if each.order <= last])


def _save_data(inode: Inode, changes: list[Change]) -> None:
    for change in changes:
        change.make(inode.safe_content)


def _save_names(disk: Disk, renamings: list[Renaming]) -> None:
    for renaming in renamings:
        disk.save(renaming)


def _forget_unsynced(inode: Inode) -> None:
    inode.unsynced.clear()
    inode.content = bytearray(inode.safe_content)
    inode.names = dict(inode.safe_names)


def _count_names(disk: Disk) -> None:
    for inode in disk.inodes.values():
        inode.nlink = 1 if inode.is_folder else 0
    for folder in disk.inodes.values():
        for name, ino in folder.names.items():
            inode = disk[ino]
            inode.home = folder.ino, name
            inode.nlink += 0 if inode.is_folder else 1
