"""The folder of one run: how it is made, and which log is its newest.

1.log 2.log                  the log that was moved, and the one that goes on
3.log.<clock>                a log that is being made, or whose maker died
"""

import errno
import os
import re
import shutil
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, unquote

from reference_agent.stores.base import UnreadableCheckpoint
from reference_agent.stores.event_log import EventLog, Run, write

ENDING = ".run"
MAKING = "!"
"""In front of a folder that is being made; the name of no run begins with it."""

_NAME_MAX = 200  # a name may have 255 bytes, and some of ours grow
_LOG = re.compile(r"(\d+)\.log(\.\d+)?")


def name_of(run_id: str) -> str:
    """A name for each id that stays in its folder; of a very long one, its hash."""
    name = quote(run_id, "", errors="surrogatepass")
    if len(name) > _NAME_MAX:
        name = sha256(name.encode()).hexdigest()
    return name + ENDING


def id_of(name: str) -> str:
    """The id of a run by its name, if it was not too long."""
    return unquote(name.removesuffix(ENDING), errors="surrogatepass")


def is_run(name: str) -> bool:
    """Whether a run has that name, and not what its maker left behind."""
    return name.endswith(ENDING) and not name.startswith(MAKING)


def make(place: Path, run: Run) -> bool:
    """The folder with its first log, whole; False if there is one.

    A folder cannot be renamed over one that holds something, so one maker wins; its
    new name is durable once its own folder is synced, which is the caller's to do.
    """
    new = place.with_name(f"{MAKING}{place.name}.{time.time_ns()}")
    try:
        new.mkdir()
        _write_new(new / "1.log", run.snapshot())
        sync_folder(new)
        new.rename(place)
    except FileNotFoundError:  # the winner has cleaned up
        return False
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        shutil.rmtree(new, ignore_errors=True)
        return False
    for left in place.parent.glob(f"{MAKING}{_literal(place.name)}.*"):
        if left.suffix[1:].isdecimal():
            shutil.rmtree(left, ignore_errors=True)
    return True


def newest(place: Path) -> Path:
    """The log that counts. Raises UnreadableCheckpoint where there is none."""
    names = (_LOG.fullmatch(name) for name in os.listdir(place))
    logs = [int(found[1]) for found in names if found and not found[2]]
    if not logs:
        raise UnreadableCheckpoint(f"{place.name} is there, and its log is gone")
    return place / f"{max(logs)}.log"


def move(log: EventLog) -> None:
    """Begin the next log where a moved one ended, and remove those before that one.

    Several may do it at once: all write the same, and linking replaces nothing. The
    one before stays, so that who lists the folder meanwhile finds one.
    """
    place, number = log.path.parent, int(log.path.stem)
    new = place / f"{number + 1}.log.{time.time_ns()}"
    _write_new(new, log.run.snapshot())
    with suppress(FileExistsError, FileNotFoundError):  # another was faster
        os.link(new, place / f"{number + 1}.log")
    new.unlink(missing_ok=True)
    sync_folder(place)
    for name in os.listdir(place):
        if _is_old(name, number):
            (place / name).unlink(missing_ok=True)


def sync_folder(place: Path) -> None:
    """Make the names in a folder durable."""
    folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def make_folder(place: Path) -> None:
    """A folder, and those that it is in, durable if they had to be made."""
    if not place.is_dir():
        make_folder(place.parent)
        place.mkdir(exist_ok=True)
        sync_folder(place.parent)


def _write_new(path: Path, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        write(file, data)
        os.fsync(file)
    finally:
        os.close(file)


def _is_old(name: str, number: int) -> bool:
    found = _LOG.fullmatch(name)
    if not found:
        return False
    return int(found[1]) < (number + 2 if found[2] else number)


def _literal(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)
