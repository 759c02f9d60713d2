"""Finds and ends the processes of a campaign that nobody looks after any more.

A process belongs to a campaign if it carries its mark (see `mark.py`) or was started
with its variable. Servers write over their environment, so a trace of the campaign's
folder will do too: it works there, has a file open there, or was given a path there.
That alone could be somebody having a look, so such a process must also be of our user,
have no terminal, as a shell or an editor has, and have started after the folder.
"""

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from chaoskit.agents.linux import Process, held, look
from chaoskit.agents.mark import CAMPAIGN_VARIABLE, is_of, mark_of

_SECONDS_MAX = 10.0
_CLOCK_SECONDS = 2.0  # how far the kernel's two clocks may be apart


OWNER = "owner"
"""The lock in a campaign's folder. Made first; others open it to see if it is free."""


def end_processes(campaign: str, folder: Path) -> bool:
    """Kills until none is left; False where some could not be ended in ten seconds.

    Spares this process and its ancestors.
    """
    end = time.monotonic() + _SECONDS_MAX
    while found := list(_processes(campaign, folder)):
        felled = [process for process in found if _fell(process)]
        for process in felled:
            _see_off(process, max(0.0, end - time.monotonic()))
        if not felled or time.monotonic() > end:
            return False
    return True


def _processes(campaign: str, folder: Path) -> Iterator[Process]:
    spared = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for pid in set(psutil.pids()) - spared:
        process = look(pid)
        if process and not process.zombie and _belongs(pid, campaign, folder):
            yield process


def _belongs(pid: int, campaign: str, folder: Path) -> bool:
    if is_of(mark_of(pid), campaign):
        return True
    with suppress(psutil.Error, OSError):
        process = psutil.Process(pid)
        return _is_tagged(process, campaign) or (
            _may_be_ours(process, folder)
            and any(_lies_in(folder, trace) for trace in _traces(process, folder))
        )
    return False


def _may_be_ours(process: psutil.Process, folder: Path) -> bool:
    return (
        process.uids().real == os.getuid()
        and process.terminal() is None
        and process.create_time() > (folder / OWNER).stat().st_mtime - _CLOCK_SECONDS
    )


def _is_tagged(process: psutil.Process, campaign: str) -> bool:
    with suppress(psutil.AccessDenied):
        return process.environ().get(CAMPAIGN_VARIABLE) == campaign
    return False


def _traces(process: psutil.Process, folder: Path) -> Iterator[str]:
    with suppress(psutil.AccessDenied):
        yield process.cwd()
    with suppress(psutil.AccessDenied):
        yield process.exe()
    with suppress(psutil.AccessDenied):
        yield from process.cmdline()
    with suppress(psutil.AccessDenied):
        paths = {file.path for file in process.open_files()}
        yield from paths - {str(folder / OWNER)}


def _lies_in(folder: Path, trace: str) -> bool:
    """Whether a path, or an argument such as `--dir=PATH`, is the folder or below."""
    return f"{folder}{os.sep}" in trace or trace.endswith(str(folder))


def _fell(process: Process) -> bool:
    with suppress(ProcessLookupError), held(process) as pidfd:
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        except PermissionError:
            return False
    return True


def _see_off(process: Process, seconds: float) -> None:
    with suppress(ProcessLookupError), held(process) as pidfd:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.poll(seconds * 1000)
