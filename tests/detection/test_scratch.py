"""What a self-test leaves in the folder for temporary files: nothing for long."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# As a self-test does: a folder, and in it the socket from which campaigns are forked.
BEGIN = """
from multiprocessing.forkserver import ensure_running
from chaoskit.selftest.scratch import scratch

scratch()
ensure_running()
"""
DIE = f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})\n"


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder whose path is short, as that of a socket has to be."""
    with tempfile.TemporaryDirectory(prefix="t") as folder:
        yield Path(folder)


def run(code: str, temporary: Path) -> subprocess.CompletedProcess[str]:
    """Run a program with its temporary files in a folder of the test's own."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_one_that_is_killed_leaves_only_what_the_next_one_removes(temporary):
    """The socket's folder too, which nobody else would know for ours."""
    assert run(BEGIN + DIE, temporary).returncode == -signal.SIGKILL
    assert os.listdir(temporary) == [f"chaoskit-{os.geteuid()}"]
    done = run(BEGIN, temporary)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(temporary) == []


def test_a_path_that_is_too_long_for_a_socket_is_not_tried(temporary):
    """It would keep the self-test from running at all."""
    deep = temporary / ("x" * (60 - len(str(temporary))))
    deep.mkdir()
    done = run(BEGIN, deep)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(deep) == []
