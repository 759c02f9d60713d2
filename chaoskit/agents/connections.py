"""Who has connected: from the addresses of a connection to the process that holds it.

Several lives may be open at once, and all connect to the same ports. The kernel knows:
/proc/net/tcp gives the inode of a socket (proc_net_tcp(5)), /proc/PID/fd its owners.
"""

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from chaoskit.agents.life import Endpoint

_LOCAL, _REMOTE, _INODE = 1, 2, 9
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


def inode_of(client: Endpoint, server: Endpoint) -> int | None:
    """The inode of the client's socket of an IPv4 connection within this machine.

    None where it is closed already.
    """
    wanted = (_as_kernel_writes(client), _as_kernel_writes(server))
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if (words[_LOCAL], words[_REMOTE]) == wanted:
            return int(words[_INODE]) or None
    return None


def holds(pids: Iterable[int], inode: int) -> bool:
    """Whether one of these processes has the socket open."""
    return any(f"socket:[{inode}]" in _files(pid) for pid in pids)


def _as_kernel_writes(end: Endpoint) -> str:
    host, port = end
    address = int.from_bytes(socket.inet_aton(host), "little")
    return f"{address:08X}:{port:04X}"


def _files(pid: int) -> set[str]:
    folder = f"/proc/{pid}/fd"
    found: set[str] = set()
    with suppress(*_GONE):
        for fd in os.listdir(folder):
            with suppress(*_GONE):
                found.add(os.readlink(f"{folder}/{fd}"))
    return found
