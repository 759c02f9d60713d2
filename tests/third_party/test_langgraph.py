"""LangGraph under test: what its README's table says of each mode and saver is true."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "scenarios" / "third_party" / "langgraph"
SETUP_SECONDS_MAX = 300
REPLAY_SECONDS_MAX = 300
PAID = "kill@0:tools.pay[o-1]#1:after"
APPROVED = "kill@1:tools.pay[o-1]#1:after"
"""In the life that a person's answer began."""
LOST = (
    "refuse@0:postgres.insert[checkpoint_writes]#3:before"
    " + kill@0:tools.book[7]#1:after"
)
"""The way to the store breaks, and the process dies before it has noticed."""
NEW_KEY = frozenset({"effects/stable-key"})
"""A step that is done again asks the model again, and the key was the id it gave."""


@dataclass(frozen=True)
class Row:
    """A line of the table: one schedule, and what chaoskit has to say about it."""

    mode: str
    store: str
    schedule: str
    found: frozenset[str] = frozenset()
    scenario: str = "chain.yaml"


ROWS = [
    Row("sync", "sqlite", APPROVED, scenario="approve.yaml"),
    Row("sync", "redis", PAID),
    Row("async", "postgres", LOST, NEW_KEY),
    Row("exit", "sqlite", PAID, NEW_KEY),
]
"""Each mode and each saver once."""
FULL_ROWS = [*ROWS, Row("sync", "sqlite", PAID), Row("sync", "postgres", PAID)]


def pytest_generate_tests(metafunc):
    """All rows with ``--full``."""
    if "row" in metafunc.fixturenames:
        rows = FULL_ROWS if metafunc.config.getoption("--full") else ROWS
        metafunc.parametrize("row", rows, ids=lambda r: f"{r.mode}-{r.store}")


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """LangGraph's own, made where it is missing; Redis Stack is first on PATH."""
    bin_here = os.path.dirname(sys.executable)
    path = f"{FOLDER / '.venv' / 'redis'}:{bin_here}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path}
    made = subprocess.run(
        [str(FOLDER / "setup.sh"), "--redis"],
        env=env,
        capture_output=True,
        text=True,
        timeout=SETUP_SECONDS_MAX,
        check=False,
    )
    assert made.returncode == 0, (
        f"{FOLDER}/setup.sh --redis makes LangGraph's environment from a package index,"
        f" and could not:\n{made.stderr}"
    )
    return env


def test_a_missing_environment_is_an_error_that_says_how_to_get_it(tmp_path):
    """Nothing is skipped, and nothing is called a finding of the agent's."""
    folder = tmp_path / "langgraph"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns(".*"))
    ran = subprocess.run(
        [sys.executable, "-m", "chaoskit", "run", "langgraph/chain.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2, ran.stderr
    assert f"run {folder}/setup.sh first" in ran.stderr


def test_the_table_is_true(row, environment, tmp_path):
    """A schedule of each mode has the verdict that the table gives it."""
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "chaoskit", "replay", FOLDER / row.scenario),
            *(row.schedule, "--agent", FOLDER / f"{row.mode}.yaml"),
            *("--store", row.store, "--out", tmp_path / "out", "--jobs", "1"),
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=REPLAY_SECONDS_MAX,
        check=False,
    )
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    found = {finding["requirement"] for finding in report["findings"]}
    assert found == row.found, ran.stdout
    assert report["verdict"] == ("fail" if row.found else "pass"), ran.stdout
