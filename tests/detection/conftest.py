"""The program as a user runs it, for tests of what it detects."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def chaoskit(tmp_path: Path) -> Callable[..., Done]:
    """Run a verb of the program in a folder of the test's own."""

    def call(*words: str, python: str = sys.executable, **env: str) -> Done:
        return subprocess.run(
            [python, "-m", "chaoskit", *words],
            cwd=tmp_path,
            env=env or None,
            capture_output=True,
            text=True,
            timeout=900,
        )

    return call
