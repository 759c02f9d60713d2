"""How a process ended that is not our child: asked of the kernel, where it can tell."""

import fcntl
import os
import struct

# <linux/pidfd.h>: _IOWR(0xFF, 11, struct pidfd_info), version 0 of the structure.
_INFO = struct.Struct("=QQ11Ii")
_GET_INFO = 3 << 30 | _INFO.size << 16 | 0xFF << 8 | 11
_EXIT = 1 << 3


def wait_status(pidfd: int) -> int | None:
    """What wait(2) told its parent, once that has reaped it.

    None before Linux 6.15, which does not keep it. The pidfd must have been opened
    while the process was there.
    """
    question = bytearray(_INFO.size)
    _INFO.pack_into(question, 0, _EXIT, *[0] * 13)
    try:
        fcntl.ioctl(pidfd, _GET_INFO, question)
    except OSError:
        return None
    known, *_, status = _INFO.unpack(question)
    return int(status) if known & _EXIT else None


def code_and_signal(status: int) -> tuple[int | None, int | None]:
    """The exit code or the signal that such a status holds."""
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status), None
    return None, os.WTERMSIG(status)
