"""The rules of the house, as tests: lint, types, layers, and what no tool knows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SOURCES = [
    path
    for folder in ("chaoskit", "reference_agent")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "specimens" not in path.parts  # agents, good and bad ones, that do as they like
]


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        ("mypy",),
        ("lint-imports",),
    ],
    ids=lambda command: command[0] + "".join(command[1:2]),
)
def test_tools_have_no_complaint(command):
    """Lint, form, strict types, and imports that point down."""
    done = subprocess.run(
        [BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


SLEEPERS = {
    "chaoskit/agents/docker/life.py": "an engine that learns of an end gives no sign",
    "chaoskit/agents/family.py": "lets a debugger of the life go first",
    "chaoskit/trial/crew.py": "a supervisor's pause before it starts one again",
    "chaoskit/trial/run.py": "a durable wait of the agent takes its time",
    "chaoskit/world/servers/process.py": "a server that starts gives no other sign",
    "reference_agent/stores/event_log.py": "a turn that nobody need wait for",
    "reference_agent/stores/files.py": "a folder calls nobody: it is looked at",
    "reference_agent/stores/redis_runs.py": "the queue is polled",
    "reference_agent/stores/sqlite.py": "a database calls nobody: it is looked at",
}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_waits_by_sleeping_or_draws_from_a_global_generator(path):
    """Waiting is for a thing, not for a time; the exceptions have reasons."""
    text = path.read_text()
    assert not re.search(r"random\.(random|choice|randint|shuffle)\(", text)
    name = str(path.relative_to(ROOT))
    assert (name in SLEEPERS) == bool(re.search(r"\bsleep\(", text))


def test_the_tree_names_no_machine_and_no_registry():
    """Paths of one machine and addresses of package registries stay out."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    words = ("/root" + "/", "/work" + "/", "pypi" + ".org", "python" + "hosted")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_file():
            text = path.read_text(errors="replace")
            assert not [word for word in words if word in text], name
