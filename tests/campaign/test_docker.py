"""Campaigns in containers: the reference agent passes; a disk of its own is found out.

Each runs every life in a container of an image that was built from this machine's files
(`tests/docker/image.py`), at a reduced size.
"""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from chaoskit.agents.docker.engine import CAMPAIGN_LABEL

FOLDER = Path(__file__).parents[1] / "docker"
RUN = ["--task", "{run}", "--goal", "{goal}", "--resume"]
REFERENCE = ["python", "-m", "reference_agent", "--store", "{store}", *RUN]
# The same with plain files on the container's own disk, and no shell to say so.
IN_PYTHON = (
    "import os, sys; os.environ['CHAOSKIT_STATE_DIR'] = os.getcwd();"
    " from reference_agent.__main__ import main; sys.exit(main())"
)
ON_ITS_DISK = ["python", "-c", IN_PYTHON, "--store", "files", *RUN]
SCRIPT = [
    {"call": {"hold_seat": {"order": "o-1", "seat": "12A"}}},
    {"call": {"charge_card": {"order": "o-1", "cents": 100}}},
    {"say": "Paid."},
]
DISK = ["python", "disk_agent.py", "{run}", "{goal}"]


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    api = docker.APIClient(version="auto")
    yield api
    api.close()


@pytest.fixture(scope="module")
def disk_image(docker_image: str, engine: Any) -> Iterator[str]:
    """The image for tests, with the agent that keeps its state on the disk."""
    recipe = f"FROM {docker_image}\nCOPY disk_agent.py .\n".encode()
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(recipe)
        tar.addfile(entry, io.BytesIO(recipe))
        tar.add(FOLDER / "disk_agent.py", "disk_agent.py")
    context.seek(0)
    name = f"chaoskit-test-disk:{os.getpid()}"
    list(engine.build(fileobj=context, custom_context=True, tag=name, rm=True))
    yield name
    engine.remove_image(name)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a scenario for an agent in a container; returns its path."""

    def write(
        start: list[str], image: str, disk: str, store: str, **changes: Any
    ) -> Path:
        manifest = {
            "name": "in-docker",
            "launch": "docker",
            "docker": {"image": image, "disk": disk},
            "start": start,
            "store": store,
            "contract": {"effects": "exactly-once"},
        }
        scenario = {
            "name": "in-docker",
            "agent": "agent.yaml",
            "task": {"goal": "Pay the bill"},
            "llm": {"script": SCRIPT},
            "tools": {"hold_seat": "keyed", "charge_card": "keyed"},
            **changes,
        }
        (tmp_path / "agent.yaml").write_text(json.dumps(manifest))
        path = tmp_path / "scenario.yaml"
        path.write_text(json.dumps(scenario))
        return path

    return write


def left_in(engine: Any, campaign: str) -> list[str]:
    """Whatever a campaign has in the engine."""
    label = {"label": f"{CAMPAIGN_LABEL}={campaign}"}
    found = [
        *engine.containers(all=True, filters=label),
        *engine.images(all=True, filters=label),
    ]
    return [each["Id"] for each in found]


SHORT: dict[str, Any] = {
    "llm": {"script": SCRIPT[1:]},
    "tools": {"charge_card": "keyed"},
}


@pytest.mark.parametrize("store", ["redis", "postgres"])
def test_the_reference_agent_passes_with_a_fresh_disk_in_each_life(
    chaoskit: Any, write: Any, docker_image: str, store: str
) -> None:
    """Every crash state that kills can reach: what it needs is in the server."""
    search, volatile = {"strategy": "closure"}, ["*.takes"]
    words = (REFERENCE, docker_image, "fresh", store)
    path = write(*words, search=search, volatile=volatile, **SHORT)
    result = chaoskit("run", path)
    assert result.report["verdict"] == "pass", result.stdout
    assert result.code == 0


def test_the_reference_agent_on_files_is_found_out_with_a_fresh_disk(
    chaoskit: Any, write: Any, docker_image: str
) -> None:
    """Its log is gone with its container: each life is its first."""
    path = write(ON_ITS_DISK, docker_image, "fresh", "none", **SHORT)
    result = chaoskit("replay", path, "kill@0:llm.chat#2:after")
    assert result.report["verdict"] == "fail", result.stdout
    assert "progress/not-again" in result.requirements


def test_the_reference_agent_on_files_passes_with_a_disk_that_is_kept(
    chaoskit: Any, write: Any, docker_image: str
) -> None:
    path = write(ON_ITS_DISK, docker_image, "keep", "none", **SHORT)
    result = chaoskit("replay", path, "kill@0:llm.chat#2:after")
    assert result.report["verdict"] == "pass", result.stdout


def test_state_on_a_disk_that_is_kept_survives_every_kill(
    chaoskit: Any, write: Any, disk_image: str
) -> None:
    """The disk goes from life to life, up to the last rename before the kill."""
    result = chaoskit("run", write(DISK, disk_image, "keep", "none"))
    assert result.report["verdict"] == "pass", result.stdout


def test_state_on_a_disk_that_is_fresh_is_found_out(
    chaoskit: Any, write: Any, disk_image: str
) -> None:
    """The same agent begins anew after each kill, and repeats what was done."""
    path = write(DISK, disk_image, "fresh", "none")
    result = chaoskit("replay", path, "kill@0:llm.chat#2:after")
    assert result.report["verdict"] == "fail", result.stdout
    assert "progress/not-again" in result.requirements


@pytest.fixture
def begin(
    write: Any, disk_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], "tuple[subprocess.Popen[str], str]"]:
    """A campaign that has begun to kill, and its id."""
    root = tmp_path / "t"
    root.mkdir()
    monkeypatch.setenv("TMPDIR", str(root))

    def begin() -> "tuple[subprocess.Popen[str], str]":
        search = {"strategy": "sweep", "trials": 1}
        path = write(DISK, disk_image, "keep", "none", search=search)
        words = ["run", str(path), "--out", str(tmp_path / "begun")]
        process = subprocess.Popen(
            [sys.executable, "-m", "chaoskit", *words],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("sweep"):
                (folder,) = root.glob("chaoskit-*/*")
                return process, folder.name
        process.wait()
        raise AssertionError("the campaign ended before its search began")

    return begin


def test_a_campaign_that_ends_or_is_interrupted_leaves_nothing_in_the_engine(
    begin: Any, engine: Any
) -> None:
    for signum in (0, signal.SIGINT):
        process, campaign = begin()
        assert left_in(engine, campaign) or not signum
        process.send_signal(signum)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == (130 if signum else 3), errors
        assert left_in(engine, campaign) == []


def test_what_a_killed_campaign_left_is_removed_by_the_next(
    begin: Any, chaoskit: Any, tmp_path: Path, engine: Any
) -> None:
    process, campaign = begin()
    process.kill()
    process.communicate()
    assert left_in(engine, campaign)
    assert chaoskit("replay", tmp_path / "scenario.yaml", "").code in (0, 3)
    assert left_in(engine, campaign) == []
