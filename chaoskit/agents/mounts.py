"""Takes mounts out of the file tree that a worker put there, and may have left."""

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

HELPER = "fusermount3"
"""It has root's rights for just this, and comes with FUSE."""
_MNT_DETACH = 2
_SECONDS_MAX = 10


def unmount(folder: Path) -> None:
    """Take a mount away, dead or alive, as soon as nobody is in it any more.

    Nobody in this process may be serving it: to leave, the kernel writes back what is
    not written, and waits for that.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0 and libc.umount2(os.fsencode(folder), _MNT_DETACH) == 0:
        return
    if helper := shutil.which(HELPER):
        call = (helper, "-u", "-z", "-q", "--", str(folder))
        subprocess.run(call, check=False, timeout=_SECONDS_MAX)


def unmount_below(folder: Path) -> None:
    """Take away all that is mounted in a folder, the newest first.

    Asks the kernel for its list (proc(5), mountinfo) and not the folder: where nobody
    serves a mount any more, a look at it is an error, or does not come back.
    """
    lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    places = [_place(line.split(" ")[4]) for line in lines.splitlines()]
    for place in reversed(places):
        if folder in place.parents:
            unmount(place)


def _place(escaped: str) -> Path:
    return Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), escaped))
