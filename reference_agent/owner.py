"""Who holds a lease, so that whoever finds it can tell whether that one is gone.

A lease of a dead process would keep its run waiting until it expires. A process on the
same machine can know better: process ids are used again, but not with the same start.
Anything that cannot be told for sure (another machine, another container, another kind
of system) counts as alive, and then only time ends the lease.
"""

import os
from pathlib import Path

_HERE = Path("/proc/self")


def me() -> str:
    """This process, by its machine's boot, its process space, its id and its start."""
    pid = os.getpid()
    return f"{_place()} {pid} {_started(pid)}"


def is_gone(owner: str) -> bool:
    """Whether that process surely runs no more."""
    place, _, rest = owner.rpartition(" ")
    place, _, pid = place.rpartition(" ")
    if not place or place != _place() or not pid.isdecimal():
        return False
    return _started(int(pid)) != rest


def _place() -> str:
    """Where a process id means something; nothing where that cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(_HERE / 'ns' / 'pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in ticks since the boot; nothing for a dead one.

    See proc(5): the name in brackets may hold anything, so fields count from its end.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    state, start = fields[0], fields[19]
    return "" if state in "ZX" else start
