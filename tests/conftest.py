"""What the tests of several folders share."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

# A shell has what it runs in the background ignore Ctrl-C, and all that is started by
# it too; the tests that send it expect it to be heard.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def docker_image() -> str:
    """An image with Python and the reference agent, of this machine's own files."""
    script = Path(__file__).with_name("docker") / "image.py"
    made = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        reason = made.stderr.strip().splitlines()[-1]
        raise RuntimeError(
            f"no image for the tests could be built: {reason}; these tests need a"
            " docker engine on this machine: install docker.io and start it"
        )
    return made.stdout.strip()
