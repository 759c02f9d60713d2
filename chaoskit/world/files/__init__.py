"""The files service: a folder in which each change is a crossing, on a disk of ours.

Operations, each with the path inside the folder: ``create``, ``write``, ``truncate``,
``fsync`` (fdatasync too, and of a folder), ``rename`` and ``link`` (with the new path),
``unlink``, ``mkdir``, ``rmdir``, ``symlink``, ``chmod`` (chown too); the folder itself
is ``.``. Edges: ``before`` (nothing is done) and ``after`` (it is done, and the call
has not returned). A ``write`` has its bytes as its pieces; one of more than a megabyte
comes as several. Looking, reading and opening are not counted, nor are times, locks,
what the kernel writes back from mapped memory, and SQLite's ``-shm``, which is such
memory.

A kill leaves what was written, as on a machine that runs on; ``powerloss`` leaves what
was synced (see `chaoskit.world.files.disk` for what that is). Sync with fsync,
fdatasync, msync or O_SYNC: Linux does not tell a FUSE file system of `sync` and
`syncfs`, so what an agent leaves to those is lost here.

The disk is a small one: a file of more than 256 MiB, holes included, is refused with
EFBIG, and more than 512 MiB in all files with ENOSPC. What is refused changes nothing
and is no crossing.

A life has a mount of its own at one and the same place, so that nothing that the kernel
keeps, and no late request of the dead, passes to the next. Only lives that are there at
the same time share one, with its locks. The loop that serves the folder must never look
into it: it would wait for itself.
"""

from chaoskit.world.files.service import Files

__all__ = ["Files"]
