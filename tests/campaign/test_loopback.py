"""Everything that a campaign listens on is on the loopback interface."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
LOOPBACK = {"127.0.0.1", "::1"}


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _listening(process: psutil.Process) -> set[tuple[str, int]]:
    """What a process listens on, and where it takes datagrams."""
    try:
        sockets = process.net_connections("inet")
    except psutil.Error:
        return set()  # it has just ended
    waits = (psutil.CONN_LISTEN, psutil.CONN_NONE)
    return {tuple(s.laddr) for s in sockets if s.laddr and s.status in waits}


@pytest.mark.parametrize("kept", ["postgres", "file", "redis"])
def test_a_campaign_listens_on_loopback_only(kept, tmp_path):
    """Read from the system, over and over while a campaign runs, for all its family."""
    agent = ROOT / "scenarios" / "kept" / f"{kept}.yaml"
    words = [ROOT / "scenarios" / "kept.yaml", "--agent", agent]
    if kept == "redis":
        words = [ROOT / "scenarios" / "book_flight.yaml"]
    command = [sys.executable, "-m", "chaoskit", "run", *words, "--trials", "4"]
    command += ["--strategy", "sample", "--out", tmp_path / "out"]
    seen = set()
    with subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL) as run:
        campaign = psutil.Process(run.pid)
        while run.poll() is None:
            for process in _family(campaign):
                seen |= _listening(process)
    assert len(seen) >= 4, "llm, tools, mcp and smtp at least"
    assert {host for host, _ in seen} <= LOOPBACK
