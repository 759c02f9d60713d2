"""The temporary folder of a campaign, and the tidying up after those that died.

`<tmp>/chaoskit-<uid>/<campaign id>/` holds every file of a campaign, and a file `owner`
that its process keeps locked (flock(2)): the kernel lets go of the lock when the
process ends, however it ends. So a folder whose lock is free has lost its owner, and
whatever belongs to it, files, mounts, processes and containers, is a leftover.

The folder above is locked too, while a campaign is being entered in it and while the
siblings are gone through: nobody can see one that is made but not yet locked.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from chaoskit.agents.belongings import OWNER, end_processes
from chaoskit.agents.docker.leftovers import remove_containers
from chaoskit.agents.mark import CAMPAIGN_VARIABLE
from chaoskit.agents.mounts import unmount_below

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class TemporaryFolderError(Exception):
    """The folder for temporary files cannot be trusted or made. Says which and why."""


class CampaignFolder:
    """A folder of this campaign alone, for as long as this process lives.

    `temporary` is where to make it, by default what TMPDIR says. Raises
    `TemporaryFolderError`. Processes forked without an exec share the lock: they must
    not outlive this one.
    """

    def __init__(self, temporary: Path | None = None) -> None:
        temporary = temporary or Path(tempfile.gettempdir())
        # As the kernel will name it, in what a process has open.
        self._base = temporary.resolve() / f"chaoskit-{os.geteuid()}"
        with _locked(self._base):
            self.path = Path(tempfile.mkdtemp(prefix="c", dir=self._base))
            self._owner = _claim(self.path)

    @property
    def id(self) -> str:
        """The campaign's id, which is the folder's name."""
        return self.path.name

    @property
    def tag(self) -> dict[str, str]:
        """The variable, by which what this campaign starts can be known as its own."""
        return {CAMPAIGN_VARIABLE: self.id}

    @classmethod
    def fresh(cls, temporary: Path | None = None) -> Self:
        """A new folder, and the leftovers beside it gone."""
        folder = cls(temporary)
        folder.clean_up_leftovers()
        return folder

    def clean_up_leftovers(self) -> tuple[str, ...]:
        """Ends the processes of campaigns that died, and removes their folders.

        Returns their ids. What resists stays for the next campaign to try.
        """
        with _locked(self._base):
            siblings = [path for path in self._base.iterdir() if _is_ours(path)]
            claims = {path: _claim(path) for path in siblings if path != self.path}
        claimed = {path: owner for path, owner in claims.items() if owner is not None}
        for path, owner in claimed.items():
            _clear_away(path)
            os.close(owner)
        return tuple(path.name for path in claimed)

    def close(self) -> None:
        """Ends every process of this campaign, but for this one and its ancestors.

        Removes the folder. May be called again.
        """
        if self._owner is None:
            return
        _clear_away(self.path)
        os.close(self._owner)
        self._owner = None
        with suppress(OSError, TemporaryFolderError), _locked(self._base):
            self._base.rmdir()  # where we were the last

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


@contextmanager
def _locked(base: Path) -> Iterator[None]:
    while (folder := _lock(base)) is None:
        pass
    try:
        yield
    finally:
        os.close(folder)


def _lock(base: Path) -> int | None:
    """None where a campaign that was the last removed it meanwhile."""
    folder = _open(base)
    if folder is None:
        return None
    fcntl.flock(folder, fcntl.LOCK_EX)
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(folder), base.lstat()):
            return folder
    os.close(folder)
    return None


def _open(base: Path) -> int | None:
    try:
        with suppress(FileExistsError):
            base.mkdir(mode=0o700)
    except OSError as error:
        raise TemporaryFolderError(_advise(base, str(error))) from error
    try:
        folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TemporaryFolderError(_advise(base, "it is no folder")) from error
    state = os.fstat(folder)
    if state.st_uid == os.geteuid() and not state.st_mode & _OTHERS_MAY_WRITE:
        return folder
    os.close(folder)
    found = f"it is user {state.st_uid}'s, with mode {state.st_mode & 0o777:o}"
    raise TemporaryFolderError(_advise(base, found))


def _advise(base: Path, found: str) -> str:
    return (
        f"{str(base)!r} cannot hold the temporary files: {found}; expected a folder of"
        f" user {os.geteuid()} that nobody else can write to. Remove it, or set TMPDIR"
        " to a folder of yours."
    )


def _claim(folder: Path) -> int | None:
    """The lock on a campaign's folder; None where its owner lives."""
    try:
        owner = os.open(folder / OWNER, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(owner)
        return None
    return owner


def _is_ours(path: Path) -> bool:
    with suppress(FileNotFoundError):
        state = path.lstat()
        return stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid()
    return False


def _clear_away(folder: Path) -> None:
    # Whoever makes containers first: else one might come after the last was removed.
    if end_processes(folder.name, folder) and remove_containers(folder):
        unmount_below(folder)
        for parent, names, _ in os.walk(folder):
            for path in (Path(parent, name) for name in names):
                _make_removable(path)
        shutil.rmtree(folder, ignore_errors=True)


def _make_removable(path: Path) -> None:
    """An agent may have made it read-only; who still ends may have removed it."""
    with suppress(FileNotFoundError):
        if not path.is_symlink():
            path.chmod(0o700)
