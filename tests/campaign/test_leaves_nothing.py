"""After a campaign, however it ended, nothing of it is left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest


def _belongings(root: Path) -> list[str]:
    """Folders of campaigns, and processes that were marked by one below this root."""
    folders = [str(path) for path in root.glob("chaoskit-*/*")]
    marked = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(root):
                marked.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return folders + marked


@pytest.fixture
def tmpdir_of_campaigns(tmp_path, monkeypatch) -> Path:
    """A TMPDIR of the test's own; short, for it holds unix sockets."""
    root = tmp_path / "t"
    root.mkdir()
    monkeypatch.setenv("TMPDIR", str(root))
    return root


def _start(path: Path, out: Path) -> "subprocess.Popen[str]":
    """A campaign that has begun to kill: its first trial is on disk."""
    command = [sys.executable, "-m", "chaoskit", "run", str(path), "--out", str(out)]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("sweep"):
            return process
    raise AssertionError("the campaign ended before its search began")


def test_a_finished_campaign_leaves_nothing(
    write_scenario, cold_chaoskit, tmpdir_of_campaigns
):
    """No process, no server, no folder."""
    assert cold_chaoskit("run", write_scenario("children")).code == 0
    assert _belongings(tmpdir_of_campaigns) == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_campaign_leaves_nothing(
    write_scenario, tmpdir_of_campaigns, tmp_path, signum
):
    """Ctrl-C and SIGTERM: exit code 130, and the house is clean at once."""
    process = _start(write_scenario("children"), tmp_path / "out")
    process.send_signal(signum)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert _belongings(tmpdir_of_campaigns) == []


def test_ctrl_c_at_a_terminal_reaches_the_whole_group_and_is_answered_once(
    write_scenario, tmpdir_of_campaigns, tmp_path
):
    """Workers that still start say nothing, and a second Ctrl-C spoils nothing."""
    command = [sys.executable, "-m", "chaoskit", "run", str(write_scenario())]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    process.stderr.readline()  # the first stage: its workers are being started
    os.killpg(process.pid, signal.SIGINT)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, INTERRUPTED)
    assert _belongings(tmpdir_of_campaigns) == []


INTERRUPTED = "Interrupted; nothing of it is left running.\n"


def test_a_killed_campaign_is_cleaned_up_by_the_next(
    write_scenario, cold_chaoskit, tmpdir_of_campaigns, tmp_path
):
    """SIGKILL of the coordinator: the next campaign finds and removes the rest."""
    path = write_scenario("children")
    process = _start(path, tmp_path / "killed")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert cold_chaoskit("replay", path, "").code in (0, 3)
    assert _belongings(tmpdir_of_campaigns) == []


def test_a_killed_worker_is_chaoskits_own_fault(
    write_scenario, tmpdir_of_campaigns, tmp_path
):
    """Exit code 4, in words, and nothing is left of it either."""
    process = _start(write_scenario(), tmp_path / "out")
    workers = [
        child
        for child in psutil.Process(process.pid).children()
        if "spawn_main" in " ".join(child.cmdline())
    ]
    workers[0].kill()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 4, errors
    assert _belongings(tmpdir_of_campaigns) == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_no_process_of_a_long_lived_agent_outlives_a_campaign(
    write_fleet, cold_chaoskit, tmpdir_of_campaigns, tmp_path, signum
):
    """Interrupted, they are gone with it; killed, with the next one at the latest."""
    path = write_fleet()
    process = _start(path, tmp_path / "ended")
    process.send_signal(signum)
    process.communicate(timeout=60)
    if signum == signal.SIGKILL:
        assert cold_chaoskit("replay", path, "").code in (0, 3)
    assert _belongings(tmpdir_of_campaigns) == []
