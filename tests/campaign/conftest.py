"""Campaigns over the toy agent: a scenario is written to a folder and run for real."""

import json
import multiprocessing
import os
import runpy
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
IN_A_FORK = Path(__file__).with_name("in_a_fork.py")
LONGEST = 300.0
"""Seconds after which no campaign is expected to end any more."""
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
    """Run the program as a user would, but warm; returns what it left.

    With one worker, unless `--jobs` is said: the tests themselves run side by side.
    """

    def call(verb: str, path: Path, *words: str) -> Result:
        return _result(tmp_path, warm, verb, path, *words)

    warm = _Warm(tmp_path)
    return call


@pytest.fixture
def cold_chaoskit(tmp_path: Path) -> Callable[..., Result]:
    """As `chaoskit`, in an interpreter of its own."""

    def cold(words: list[str]) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "chaoskit", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
        return done.returncode, done.stdout, done.stderr

    def call(verb: str, path: Path, *words: str) -> Result:
        return _result(tmp_path, cold, verb, path, *words)

    return call


class _Warm:
    """Runs the program in forks of a process that has imported it."""

    def __init__(self, folder: Path) -> None:
        self._printed = folder / "stdout", folder / "stderr"
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["chaoskit.cli"])

    def __call__(self, words: list[str]) -> tuple[int, str, str]:
        out, err = self._printed
        job = {
            "words": words,
            "folder": str(Path.cwd()),
            "environment": dict(os.environ),
            "stdout": str(out),
            "stderr": str(err),
        }
        process = self._context.Process(
            target=runpy.run_path, args=(str(IN_A_FORK), {"job": job})
        )
        process.start()
        process.join(LONGEST)
        if process.exitcode is None:
            process.kill()
            raise AssertionError(f"it ran for {LONGEST} s: {words}")
        return process.exitcode, out.read_text(), err.read_text()


def _result(
    folder: Path, run: Callable[[list[str]], tuple[int, str, str]], *words: Any
) -> Result:
    out = folder / "out"
    jobs = () if "--jobs" in words else ("--jobs", "1")
    code, stdout, stderr = run([str(word) for word in (*words, *jobs, "--out", out)])
    report = out / "report.json"
    fields = json.loads(report.read_text()) if report.exists() else {}
    return Result(code, fields, stdout, stderr, out)
