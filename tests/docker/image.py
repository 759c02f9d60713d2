"""Builds an image for the tests from this machine's own files, without a registry.

    python tests/docker/image.py         prints the image's name

What an agent in Python needs, and nothing else: the interpreter with its standard
library, the shared libraries that they load, the reference agent with the packages that
it imports. No shell, no package manager, no user but root. Everything is copied in; the
name holds a hash of it, so that an image that is there already is used again. Agents in
another language need less: a static binary is an image by itself.
"""

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import io
import os
import py_compile
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError
from packaging.requirements import Requirement

REPOSITORY = "chaoskit-test"
ROOT = Path(__file__).resolve().parents[2]
AGENT = Path("/srv/agent")
PROGRAM = Path("/usr/bin/python")
PACKAGES = ("openai", "redis", "psycopg", "psycopg-binary")
NOT_NEEDED = re.compile(
    r"(site-packages|dist-packages|test|tests|idlelib|tkinter|turtledemo|ensurepip"
    r"|lib2to3|pydoc_data|config-.*|__pycache__)$"
)
SETTINGS = (f"ENV PATH=/usr/bin PYTHONPATH={AGENT}", f"WORKDIR {AGENT}")

Files = dict[Path, Path]
"""Where a file is in the image, and here."""


def ensure_image(api: Any) -> str:
    """The image's name; builds it if the engine does not have it."""
    with open(Path(tempfile.gettempdir(), f"{REPOSITORY}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        files = collect()
        name = f"{REPOSITORY}:{fingerprint(files)}"
        if not api.images(name):
            build(api, files, name)
        return name


def build(api: Any, files: Files, name: str) -> None:
    """Makes the image, in the place of those for other states of this machine."""
    before = [each["Id"] for each in api.images(REPOSITORY)]
    repository, _, tag = name.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        archive = str(pack(files, Path(folder)))
        api.import_image_from_file(archive, repository, tag, SETTINGS)
    for image in before:
        with suppress(APIError):  # a container may still use it
            api.remove_image(image)


def collect() -> Files:
    """Everything that goes in."""
    interpreter = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix}))
    files = {path: path for path in (interpreter, *below(library))}
    files |= {AGENT / inner: path for inner, path in packages(PACKAGES)}
    agent = ROOT / "reference_agent"
    files |= {AGENT / path.relative_to(ROOT): path for path in below(agent)}
    files |= {path: path for path in libraries(interpreter, files)}
    return files


def below(folder: Path) -> Iterator[Path]:
    for parent, names, files in os.walk(folder):
        names[:] = [name for name in names if not NOT_NEEDED.match(name)]
        yield from (Path(parent, file) for file in files)


def packages(names: tuple[str, ...]) -> Iterator[tuple[Path, Path]]:
    """The files of installed packages, and of what they need, by their place."""
    queue, done = list(names), set()
    while queue:
        name = queue.pop()
        if name in done:
            continue
        done.add(name)
        package = importlib.metadata.distribution(name)
        for file in package.files or ():
            if ".." not in file.parts and not NOT_NEEDED.match(file.parent.name):
                yield Path(file), Path(str(file.locate()))
        needs = map(Requirement, package.requires or ())
        queue += [n.name for n in needs if not n.marker or n.marker.evaluate()]


def libraries(interpreter: Path, files: Files) -> set[Path]:
    """What the interpreter and its extensions load, as ldd(1) tells."""
    loaders = [str(path) for path in files.values() if ".so" in path.suffixes]
    told = subprocess.run(
        ["ldd", str(interpreter), *loaders], capture_output=True, text=True
    )
    # One that is named by way of its neighbour is the same file.
    found = map(os.path.normpath, re.findall(r"(/\S+) \(0x", told.stdout))
    return set(map(Path, found))


def fingerprint(files: Files) -> str:
    digest = hashlib.sha256(repr(SETTINGS).encode())
    for inner, path in sorted(files.items()):
        digest.update(f"{inner}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def pack(files: Files, folder: Path) -> Path:
    """A tar of the files, with the modules compiled: a new container has no cache."""
    archive = folder / "image.tar"
    with tarfile.open(archive, mode="w") as tar:
        for inner, path in files.items():
            add(tar, inner, path)
            if inner.suffix == ".py":
                add(tar, *compiled(inner, path, folder))
        link = tarfile.TarInfo(str(PROGRAM))
        link.type, link.linkname = tarfile.SYMTYPE, str(Path(sys.executable).resolve())
        tar.addfile(link)
        tmp = tarfile.TarInfo("/tmp")
        tmp.type, tmp.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(tmp)
    return archive


def compiled(inner: Path, path: Path, folder: Path) -> tuple[Path, Path]:
    """A module's cache, for its place in the image; an empty one where it has flaws."""
    made = folder / f"{hashlib.sha256(str(inner).encode()).hexdigest()}.pyc"
    py_compile.compile(str(path), str(made), dfile=str(inner), quiet=2)
    made.touch()
    return Path(importlib.util.cache_from_source(str(inner))), made


def add(tar: tarfile.TarFile, inner: Path, path: Path) -> None:
    data = path.read_bytes()
    entry = tarfile.TarInfo(str(inner))
    entry.size, entry.mtime = len(data), int(path.stat().st_mtime)
    entry.mode = 0o755 if os.access(path, os.X_OK) else 0o644
    tar.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    print(ensure_image(docker.from_env().api))
