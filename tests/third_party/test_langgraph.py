"""LangGraph under test: what its README's table says of each mode and saver is true."""

import json
import os
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
DOCUMENTED = frozenset(
    {"effects/stable-key", "cost/not-asked-again", "progress/not-again"}
)
"""What a checkpoint costs that its documentation says may be missing."""


@dataclass(frozen=True)
class Row:
    """A line of the table: one schedule, and what chaoskit has to say about it."""

    mode: str
    store: str
    schedule: str
    found: frozenset[str] = frozenset()
    scenario: str = "chain.yaml"


ROWS = [
    Row("sync", "sqlite", PAID),
    Row("sync", "postgres", PAID),
    Row("sync", "redis", PAID),
    Row("sync", "sqlite", APPROVED, scenario="approve.yaml"),
    Row("async", "postgres", LOST, DOCUMENTED),
    Row("exit", "sqlite", PAID, DOCUMENTED),
]


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
    assert made.returncode == 0, f"setup.sh made no environment: {made.stderr}"
    return env


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row.mode}-{row.store}-{row.scenario}"
)
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
