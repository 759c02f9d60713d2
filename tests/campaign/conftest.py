"""Campaigns over the toy agent: a scenario is written to a folder and run for real."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TOY = Path(__file__).with_name("toy_agent.py")
TOY_FLEET = Path(__file__).with_name("toy_fleet.py")
SCRIPT = [
    {"call": {"pay": {"order": "o-1", "cents": 100}}},
    {"call": [{"note": {"id": "n-1"}}, {"note": {"id": "n-2"}}]},
    {"say": "Paid."},
]


@dataclass(frozen=True)
class Result:
    """What a campaign left: exit code, report, and what it printed."""

    code: int
    report: dict[str, Any]
    stdout: str
    stderr: str
    out: Path

    @property
    def requirements(self) -> list[str]:
        """The requirements that were found broken, the first one first."""
        return [finding["requirement"] for finding in self.report["findings"]]


@pytest.fixture
def write_scenario(tmp_path: Path) -> Callable[..., Path]:
    """Write a scenario for the toy agent with these flags; returns its path."""

    def write(*flags: str, launch: str = "fork", **changes: Any) -> Path:
        shutil.copy(TOY, tmp_path)
        command = ["{python}", "toy_agent.py", "{run}", "{goal}", *flags]
        manifest = {
            "name": "toy",
            "launch": launch,
            "fork": {"preload": ["http.client", "uuid"], "call": "toy_agent:main"},
            "start": command,
            "answer": [*command, "answer={answer}"],
            "store": "redis",
            "contract": {"effects": "exactly-once"},
        }
        if launch != "fork":
            del manifest["fork"]
        scenario = {
            "name": "toy",
            "agent": "agent.yaml",
            "task": {"goal": "Pay the bill"},
            "llm": {"script": SCRIPT},
            "tools": {"pay": "keyed", "note": "keyed"},
            **changes,
        }
        # JSON is YAML, and needs no writer.
        (tmp_path / "agent.yaml").write_text(json.dumps(manifest))
        path = tmp_path / "toy.yaml"
        path.write_text(json.dumps(scenario))
        return path

    return write


@pytest.fixture
def write_fleet(tmp_path: Path) -> Callable[..., Path]:
    """Write a scenario for two workers with these flags; returns its path."""

    def write(
        *flags: str, launch: str = "fork", store: str = "redis", **changes: Any
    ) -> Path:
        def command(*words: str) -> list[str]:
            return ["{python}", "toy_fleet.py", *words]

        shutil.copy(TOY_FLEET, tmp_path)
        manifest = {
            "name": "toy-fleet",
            "launch": launch,
            "submit": command("submit", "{run}", "{goal}"),
            "status": command("status", "{run}"),
            "answer": command("answer", "{run}", "{answer}"),
            "processes": {
                "worker": {"command": command("worker", *flags), "copies": 2}
            },
            "store": store,
            "contract": {"effects": "exactly-once"},
        }
        if launch == "fork":
            manifest["fork"] = {"preload": ["http.client"], "call": "toy_fleet:main"}
        scenario = {
            "name": "fleet",
            "agent": "agent.yaml",
            "task": {"goal": "Pay the bill"},
            "llm": {"script": SCRIPT},
            "tools": {"pay": "keyed", "note": "keyed"},
            "limits": {"life_seconds": 10, "trial_seconds": 60, "grace_seconds": 3},
            **changes,
        }
        (tmp_path / "agent.yaml").write_text(json.dumps(manifest))
        path = tmp_path / "fleet.yaml"
        path.write_text(json.dumps(scenario))
        return path

    return write


@pytest.fixture
def chaoskit(tmp_path: Path) -> Callable[..., Result]:
    """Run the program as a user would; returns what it left.

    With one worker, unless `--jobs` is said: the tests themselves run side by side.
    """

    def call(verb: str, path: Path, *words: str) -> Result:
        out = tmp_path / "out"
        command = [sys.executable, "-m", "chaoskit", verb, str(path), *words]
        command += [] if "--jobs" in words else ["--jobs", "1"]
        command += ["--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        report = out / "report.json"
        fields = json.loads(report.read_text()) if report.exists() else {}
        return Result(done.returncode, fields, done.stdout, done.stderr, out)

    return call
