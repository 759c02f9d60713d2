"""A campaign's folder, and what becomes of it when its owner is gone."""

import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from chaoskit.agents import CAMPAIGN_VARIABLE, CampaignFolder, TemporaryFolderError

SECONDS_MAX = 60
OWNER = """
import asyncio, subprocess
from pathlib import Path
from chaoskit.agents import *
async def main():
    folder = CampaignFolder(Path({temporary!r}))
    tell("folder", str(folder.path))
    env = dict(os.environ) | folder.tag
    launcher = ProcessLauncher()
    life = await launcher.start(
        Command({agent!r}, Path("/"), env, folder.path / "out", folder.path / "err")
    )
    await life.wait()
asyncio.run(main())
"""
AGENT = """
if daemonize():
    tell('tagged', os.getpid())
    stay()
if daemonize():
    os.closerange(0, 3)
    os.execve(sys.executable, [sys.executable, '-S', '-c', PRELUDE + BARE], {})
tell('root', os.getpid())
stay()
"""
BARE = "tell('bare', os.getpid()); stay()"
IN_FOLDER = "import signal; print(flush=True); signal.pause()"


def test_a_folder_is_private_and_of_one_campaign(tmp_path: Path) -> None:
    with CampaignFolder(tmp_path) as one, CampaignFolder(tmp_path) as two:
        assert one.path != two.path
        assert one.path.parent == two.path.parent == tmp_path / f"chaoskit-{_uid()}"
        assert [path.stat().st_mode & 0o777 for path in (one.path, two.path)] == [
            0o700,
            0o700,
        ]
        assert one.tag == {CAMPAIGN_VARIABLE: one.path.name}
    assert list(tmp_path.iterdir()) == []


def test_tmpdir_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with CampaignFolder() as folder:
        assert tmp_path in folder.path.parents


async def test_leftovers_of_a_killed_owner_are_ended_and_removed(
    stage: Any, tmp_path: Path, death_of: Any
) -> None:
    """The life itself, a daemon, and one with neither environment nor folder."""
    agent = stage.agent(f"PRELUDE = {stage.prelude!r}\nBARE = {BARE!r}\n{AGENT}").argv
    code = OWNER.format(temporary=str(tmp_path), agent=agent)
    with stage.worker(code) as owner:
        told = dict([await stage.hear() for _ in range(4)])
        owner.kill()
    left = Path(told.pop("folder"))
    assert set(told) == {"root", "tagged", "bare"}
    await death_of(told["root"])
    pidfds = {name: os.pidfd_open(told[name]) for name in ("tagged", "bare")}
    with CampaignFolder(tmp_path) as folder:
        assert folder.clean_up_leftovers() == (left.name,)
        assert {name: _is_dead(pidfd) for name, pidfd in pidfds.items()} == {
            "tagged": True,
            "bare": True,
        }
        assert not left.exists()
        assert folder.path.exists()


def test_a_folder_whose_owner_lives_is_left_alone(tmp_path: Path) -> None:
    with CampaignFolder(tmp_path) as alive:
        (alive.path / "file").touch()
        env = dict(os.environ) | alive.tag
        with (
            _running(["sleep", "1000"], stdout=None, env=env) as its,
            CampaignFolder.fresh(tmp_path),
        ):
            assert its.poll() is None
            assert (alive.path / "file").exists()


@pytest.mark.parametrize("trace", ["variable", "folder", "file", "argument"])
def test_closing_ends_what_still_belongs_to_it(tmp_path: Path, trace: str) -> None:
    with CampaignFolder(tmp_path) as folder, (folder.path / "f").open("w") as file:
        argv = [sys.executable, "-S", "-c", IN_FOLDER]
        traces: dict[str, dict[str, Any]] = {
            "variable": {"env": dict(os.environ) | folder.tag},
            "folder": {"cwd": folder.path},
            "file": {"stderr": file},
            "argument": {"args": [*argv, f"--dir={folder.path}/x"]},
        }
        with _running(**{"args": argv} | traces[trace]) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n"
            folder.close()
            assert process.wait(SECONDS_MAX) == -signal.SIGKILL
    assert not folder.path.exists()


def test_what_goes_while_it_is_cleared_away_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a server that still removes its own files as it ends."""
    walk = os.walk

    def walk_and_lose(top: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        for found in walk(top):
            shutil.rmtree(top / "server", ignore_errors=True)
            yield found

    folder = CampaignFolder(tmp_path)
    (folder.path / "server" / "tables").mkdir(parents=True)
    monkeypatch.setattr(os, "walk", walk_and_lose)
    folder.close()
    assert not folder.path.exists()


@pytest.mark.parametrize("why", ["older than it", "looks whether it is free"])
def test_who_only_has_a_look_is_spared(tmp_path: Path, why: str) -> None:
    with CampaignFolder(tmp_path) as folder:
        path = folder.path / ("owner" if why == "looks whether it is free" else "f")
        if why == "older than it":
            later = time.time() + 100
            os.utime(folder.path / "owner", (later, later))
        with (
            path.open("a") as file,
            _running(["sleep", "1000"], stdout=None, stderr=file) as reader,
        ):
            folder.close()
            assert reader.poll() is None


def test_who_clears_away_spares_itself_and_those_above(
    stage: Any, tmp_path: Path
) -> None:
    """Also where all of them belong to the campaign that is cleared away."""
    with CampaignFolder(tmp_path) as folder:
        code = f"""
        from pathlib import Path
        from chaoskit.agents.belongings import end_processes
        end_processes({folder.id!r}, Path({str(folder.path)!r}))
        """
        program = stage.worker_argv(code)
        shell = ["/bin/sh", "-c", '"$@"; exit $?', "sh", *program]
        with _running(shell, env=dict(os.environ) | folder.tag) as process:
            assert process.wait(SECONDS_MAX) == 0


def test_a_folder_is_made_under_the_lock_that_those_who_look_for_leftovers_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or it could be taken for a leftover before its own lock is there."""
    make, locked = tempfile.mkdtemp, []

    def make_and_look(*, prefix: str, dir: Path) -> str:
        base = os.open(dir, os.O_RDONLY)
        try:
            fcntl.flock(base, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            locked.append(dir)
        os.close(base)
        return make(prefix=prefix, dir=dir)

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_look)
    with CampaignFolder(tmp_path) as folder:
        assert locked == [folder.path.parent]


def test_a_base_that_goes_as_its_last_campaign_ends_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    gone: list[Path] = []

    def lose_then_lock(fd: int, how: int) -> None:
        if not gone:
            gone.append(tmp_path / f"chaoskit-{_uid()}")
            gone[0].rmdir()
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", lose_then_lock)
    with CampaignFolder(tmp_path) as folder:
        assert folder.path.parent == gone[0]
        assert folder.path.exists()


def test_folders_that_are_not_ours_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    with CampaignFolder(tmp_path / ".") as folder:
        link = folder.path.parent / "clink"
        link.symlink_to(outside)
        owner = folder.path.parent / "cowner"
        owner.mkdir()
        (owner / "owner").symlink_to(outside / "precious")
        assert folder.clean_up_leftovers() == ()
        assert (outside / "precious").exists()
        link.unlink()
        (owner / "owner").unlink()
        assert folder.clean_up_leftovers() == ("cowner",)


@pytest.mark.parametrize("kind", ["symlink", "file", "open to others", "no parent"])
def test_a_base_that_cannot_be_trusted_is_refused(tmp_path: Path, kind: str) -> None:
    base = tmp_path / f"chaoskit-{_uid()}"
    if kind == "symlink":
        base.symlink_to(tmp_path)
    elif kind == "file":
        base.touch()
    elif kind == "open to others":
        base.mkdir()
        base.chmod(0o777)
    else:
        tmp_path = tmp_path / "nowhere"
    with pytest.raises(TemporaryFolderError, match=r"chaoskit-.*TMPDIR"):
        CampaignFolder(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_base_of_another_user_is_refused(tmp_path: Path) -> None:
    base = tmp_path / f"chaoskit-{_uid()}"
    base.mkdir()
    os.chown(base, 12345, 12345)
    with pytest.raises(TemporaryFolderError, match="12345"):
        CampaignFolder(tmp_path)


def test_campaigns_that_start_and_end_at_once_do_not_trip_each_other(
    stage: Any, tmp_path: Path
) -> None:
    code = f"""
    from pathlib import Path
    from chaoskit.agents import CampaignFolder
    for _ in range(5):
        with CampaignFolder.fresh(Path({str(tmp_path)!r})) as folder:
            (folder.path / "mine").touch()
            CampaignFolder.fresh(Path({str(tmp_path)!r})).close()
            assert (folder.path / "mine").exists()
    """
    crowd = [stage.worker(code) for _ in range(3)]
    assert [process.wait() for process in crowd] == [0, 0, 0]
    assert not (tmp_path / f"chaoskit-{_uid()}").exists()


@contextmanager
def _running(
    args: list[str], *, stdout: int | None = subprocess.PIPE, **options: Any
) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        args, start_new_session=True, stdout=stdout, **options
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _is_dead(pidfd: int) -> bool:
    """Dead, be it a zombie: they may have become children of the test process."""
    (readable, _, _) = select.select([pidfd], [], [], 0)
    with suppress(ChildProcessError):
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
    os.close(pidfd)
    return bool(readable)


def _uid() -> int:
    return os.geteuid()
