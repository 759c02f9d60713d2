"""Files of a folder that somebody else may have made: read, never followed or run.

A link below the folder is refused, and so is whatever is no regular file. What does not
fit is told with file and line.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from chaoskit.model.errors import InputError, Problem, quoted

BYTES_MAX = 2**30
ONLY_FILES = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How to open what may be anything: over no link, and without waiting for a pipe."""

Model = TypeVar("Model", bound=BaseModel)


def read(root: Path, *names: str) -> str | None:
    """The text of a file below a folder, or None if there is none.

    Raises:
        InputError: it is not to be read.
    """
    path = root.joinpath(*names)
    try:
        folder = enter(root, *names[:-1])
        try:
            file = os.open(names[-1], ONLY_FILES, dir_fd=folder)
        finally:
            os.close(folder)
        with open(file, "rb") as reader:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise wrong(path, None, "something else", "a regular file")
            if found.st_size > BYTES_MAX:
                raise wrong(path, None, f"{found.st_size} bytes", "at most 1 GiB")
            return _decoded(path, reader.read(BYTES_MAX))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error


def enter(root: Path, *names: str) -> int:
    """The descriptor of a folder below another one, reached over no link.

    Raises:
        OSError: there is none, or it is no folder.
    """
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in names:
        try:
            below = os.open(name, ONLY_FILES | os.O_DIRECTORY, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    return folder


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"the byte 0x{data[error.start]:02x}"
        raise wrong(path, line, found, "text, as UTF-8") from None


def parsed(model: type[Model], text: str, path: Path) -> Model:
    """What a file of JSON holds.

    Raises:
        InputError: every problem of it, with its line.
    """
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise InputError(tuple(_problems(error, text, path))) from None


def _problems(error: ValidationError, text: str, path: Path) -> Iterator[Problem]:
    for each in error.errors(include_url=False):
        line, where = _line_of(each["loc"], text), path_of(each["loc"])
        if each["type"] == "json_invalid":
            found, why = "text that is no JSON", each["ctx"]["error"]
            words = why.rpartition(" at line ")
            line = int(words[2].split()[0]) if words[1] else None
            yield Problem(str(path), line, None, "$", found, f"JSON: {why}")
            continue
        wanted = str(each["msg"]).replace("Input should be ", "")
        if each["type"] == "extra_forbidden":
            wanted = "a key that this version of chaoskit knows"
        hint = None
        if each["loc"] == ("format",):
            hint = "it was saved by another version of chaoskit"
        found = quoted(each["input"])
        yield Problem(str(path), line, None, where, found, wanted, hint)


def path_of(place: tuple[int | str, ...]) -> str:
    """Where in a file, as in ``$.findings[0]``."""
    parts = (f"[{p}]" if isinstance(p, int) else f".{p}" for p in place)
    return "$" + "".join(parts)


def _line_of(place: tuple[int | str, ...], text: str) -> int | None:
    """Where the keys of a path stand, one after the other; near enough to look."""
    at = 0
    for part in place:
        found = text.find(f'"{part}":', at) if isinstance(part, str) else -1
        at = found if found >= 0 else at
    return text.count("\n", 0, at) + 1


def unreadable(path: Path, error: OSError) -> InputError:
    """What to say of a file that the system does not give."""
    why = error.strerror or str(error)
    hint = "links are not followed here"
    return wrong(path, None, why, "a file or folder that can be read", hint)


def wrong(
    path: Path, line: int | None, found: str, expected: str, hint: str | None = None
) -> InputError:
    """One problem of a file."""
    return InputError((Problem(str(path), line, None, "$", found, expected, hint),))
