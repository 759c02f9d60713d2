"""The self-test comes with the wheel, and runs from where that is installed."""

import os
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("chaoskit", "reference_agent", "pyproject.toml", "README.md")


@pytest.fixture
def installed(tmp_path: Path) -> str:
    """An interpreter that has chaoskit from a wheel, and all else from here."""
    source, built = tmp_path / "source", tmp_path / "built"
    source.mkdir()
    for part in map(ROOT.joinpath, PARTS):
        copy = shutil.copytree if part.is_dir() else shutil.copy
        copy(part, source / part.name)
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    words = ["pip", "wheel", *offline, "--wheel-dir", str(built), str(source)]
    done = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return _fresh_environment(tmp_path / "environment", next(built.glob("*.whl")))


def _fresh_environment(folder: Path, wheel: Path) -> str:
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    # A path that is named so is searched, and its own `.pth` files are not heeded.
    (packages / "here.pth").write_text("\n".join(site.getsitepackages()))
    return str(folder / "bin" / "python")


def test_specimens_run_from_an_installed_wheel(installed, chaoskit, tmp_path):
    """Package data is in it, and agents import the kit from it."""
    env = {**os.environ, "PYTHONPATH": ""}
    where = [
        installed,
        "-c",
        "import chaoskit.selftest.kit as kit; print(kit.__file__)",
    ]
    said = subprocess.run(where, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert str(tmp_path / "environment") in said.stdout, said.stdout + said.stderr
    words = ("selftest", "--quick", "note_after", "shell_script")
    done = chaoskit(*words, python=installed, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 broken specimens caught" in done.stdout
