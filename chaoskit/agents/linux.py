"""The few facts about processes that only the Linux kernel can tell."""

import asyncio
import ctypes
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_GONE = (FileNotFoundError, ProcessLookupError)
_KERNEL_LISTS_CHILDREN = os.path.exists("/proc/thread-self/children")


def become_subreaper() -> None:
    """Makes this process the one that inherits the orphans among its descendants.

    See prctl(2). Without it a process whose parent ends goes to init, out of sight.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Has the kernel kill this process when its parent ends, and ends if it has.

    Call it early, in the main thread, with the pid the parent had when it made us. The
    kernel goes by the thread that made us: it must live as long as its process.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    if libc.prctl(option, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"prctl({option}, {value})")


@dataclass(frozen=True)
class Process:
    """One process, told by its start (in ticks since boot) from any with its pid."""

    pid: int
    start: int
    zombie: bool = field(compare=False)


def look(pid: int) -> Process | None:
    """The process that has this pid now, from /proc/PID/stat (proc(5))."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except _GONE:
        return None
    after_name = stat.rpartition(b")")[2].split()  # a name may hold ") "
    state, threads, start = after_name[0], int(after_name[17]), int(after_name[19])
    # With more threads it is only its first one that has ended.
    return Process(pid, start, zombie=state in b"ZX" and threads <= 1)


def children(pid: int) -> list[int]:
    """Its children, zombies included.

    For the calling process the list is complete, as only a reaped child leaves it. For
    others it may miss some while they run: ask again once they have ended.
    """
    if not _KERNEL_LISTS_CHILDREN:
        return _children_by_parent(pid)
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except _GONE:
        return []
    return [child for thread in threads for child in _children_of_thread(pid, thread)]


def _children_by_parent(pid: int) -> list[int]:
    """For kernels built without CONFIG_PROC_CHILDREN: asks every process there is."""
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.NoSuchProcess:
        return []


def _children_of_thread(pid: int, thread: str) -> list[int]:
    try:
        words = Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split()
    except _GONE:
        return []
    return [int(word) for word in words]


def below(pid: int) -> Iterator[Process]:
    """Every descendant of a process, parents first."""
    for child in children(pid):
        if process := look(child):
            yield process
        yield from below(child)


def is_running(pid: int) -> bool:
    """Whether any thread of it is on a processor, or waits for one."""
    return b"R" in _states(pid)


def is_at_work(pid: int) -> bool:
    """Whether any thread of it runs, or would if a processor or a disk were free."""
    return bool({b"R", b"D"} & _states(pid))


def _states(pid: int) -> set[bytes]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except _GONE:
        return set()
    return {_state(pid, thread) for thread in threads}


def _state(pid: int, thread: str) -> bytes:
    try:
        stat = Path(f"/proc/{pid}/task/{thread}/stat").read_bytes()
    except _GONE:
        return b"X"
    return stat.rpartition(b")")[2].split()[0]


@contextmanager
def held(process: Process) -> Iterator[int]:
    """A pidfd of this very process, never of one that got its pid later.

    Raises `ProcessLookupError` where it is gone.
    """
    pidfd = os.pidfd_open(process.pid)
    try:
        # Looked at after opening: if it is the one we know now, it was when opened.
        if look(process.pid) != process:
            raise ProcessLookupError(process.pid)
        yield pidfd
    finally:
        os.close(pidfd)


def has_ended(pidfd: int) -> bool:
    """Whether a process has ended; it may not be reaped yet."""
    watch = select.poll()
    watch.register(pidfd, select.POLLIN)
    return bool(watch.poll(0))


async def ended(pidfd: int) -> None:
    """Returns once the process is dead; it may still be a zombie."""
    loop = asyncio.get_running_loop()
    dead = asyncio.Event()
    loop.add_reader(pidfd, dead.set)
    try:
        await dead.wait()
    finally:
        loop.remove_reader(pidfd)


def send(process: Process, number: int) -> None:
    """Signals a process, where it is there and ours to signal."""
    with suppress(ProcessLookupError, PermissionError), held(process) as pidfd:
        signal.pidfd_send_signal(pidfd, number)


async def see_off(process: Process) -> None:
    """Waits until it is dead, and reaps it if it is ours."""
    with suppress(ProcessLookupError), held(process) as pidfd:
        await ended(pidfd)
    bury(process)


def bury(process: Process) -> bool:
    """Whether it was dead and ours to reap, if it was dead.

    If not ours, its parent dies in the same round and makes it ours in the next.
    """
    with suppress(ProcessLookupError, ChildProcessError), held(process) as pidfd:
        return reap(pidfd) is not None
    return False


def reap_child(pid: int) -> bool:
    """Whether this child was dead, and is reaped.

    Until then nothing else can have its pid, so that it needs no pidfd.
    """
    with suppress(ChildProcessError):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG) is not None
    return False


def reap(pidfd: int) -> os.waitid_result | None:
    """How a dead child of ours ended; None while it lives."""
    return os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
