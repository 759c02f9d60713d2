"""Puts a folder of ours into the file tree.

Root asks the kernel itself; anybody else asks ``fusermount3``, which has root's rights
for just this and hands back the open device over a socket (`_FUSE_COMMFD`, as libfuse
does it). It is spoken to without libfuse: that would need a thread for each request
that is held, and it turns an interrupted request into a signal to that thread, which
Python does not see; and every life has a mount of its own.
"""

import array
import ctypes
import errno
import os
import shutil
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from chaoskit.agents.mounts import HELPER
from chaoskit.world.servers import MissingServer

DEVICE = "/dev/fuse"
_MS_NOSUID_NODEV = 2 | 4
_ADVICE = (
    "The `files` service needs FUSE. Install it (`apt-get install fuse3`), load it"
    " (`modprobe fuse`), let this user open it (`chmod 666 /dev/fuse`), or give a"
    " container `--device /dev/fuse --cap-add SYS_ADMIN`."
    " Without it an agent can still keep its state in a plain folder and say with"
    " `chaoskit.mark()` where it may be struck: see `marks` in `chaoskit doc contract`."
)


class MissingFuse(MissingServer):
    """There is no FUSE to be had; the text says why, and what to do about it."""


def mount(folder: Path) -> int:
    """Mount over a folder; returns the device to serve it by.

    Raises:
        MissingFuse: it cannot be done here.
    """
    if not os.path.exists(DEVICE):
        raise MissingFuse(f"there is no {DEVICE}. {_ADVICE}")
    if os.geteuid() == 0:
        with suppress(PermissionError):  # root of a container, perhaps, and no more
            return _mounted_by_root(folder)
    return _mounted_by_helper(folder)


def _mounted_by_root(folder: Path) -> int:
    try:
        device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENODEV, errno.ENXIO):
            raise MissingFuse(f"this kernel has no FUSE. {_ADVICE}") from None
        raise
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,default_permissions"
    result = _libc().mount(
        *(b"chaoskit", os.fsencode(folder), b"fuse.chaoskit"),
        *(ctypes.c_ulong(_MS_NOSUID_NODEV), f"{options},allow_other".encode()),
    )
    if result == 0:
        return device
    number = ctypes.get_errno()
    os.close(device)
    if number == errno.ENODEV:
        raise MissingFuse(f"this kernel has no FUSE. {_ADVICE}")
    raise OSError(number, os.strerror(number), str(folder))


def _mounted_by_helper(folder: Path) -> int:
    helper = shutil.which(HELPER)
    if helper is None:
        raise MissingFuse(f"there is no {HELPER} on the PATH. {_ADVICE}")
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, its:
        options = "default_permissions,nosuid,nodev,fsname=chaoskit,subtype=chaoskit"
        done = subprocess.run(
            (helper, "-o", options, "--", str(folder)),
            env={**os.environ, "_FUSE_COMMFD": str(its.fileno())},
            pass_fds=(its.fileno(),),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = done.stderr.strip() or f"{helper} ended with {done.returncode}"
            raise MissingFuse(f"{said}. {_ADVICE}")
        return _received(ours)


def _received(line: socket.socket) -> int:
    _, ancillary, _, _ = line.recvmsg(1, socket.CMSG_SPACE(4))
    (device,) = array.array("i", ancillary[0][2][:4])
    os.set_inheritable(device, False)
    os.set_blocking(device, False)
    return device


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
