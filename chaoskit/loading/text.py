"""Path -> text: everything that can be wrong with a file before it is YAML."""

import os
import re
import stat
from pathlib import Path

from chaoskit.loading.nodes import Place
from chaoskit.model.errors import InputError, Problem, did_you_mean, quoted

BYTES_MAX = 1024 * 1024

_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)


def read_text(path: Path) -> str:
    """The text of a file. Raises InputError; without a line if there is no such file.

    A file is read only if it is a regular one: a pipe or a device could block for ever.
    """
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            raise InputError((_no_file(path, "a file", _inside(path, mode)),))
        with path.open("rb") as file:
            return _decoded(str(path), file.read(BYTES_MAX + 1))
    except FileNotFoundError:
        raise InputError((_no_file(path, "a file that exists", _near(path)),)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            (_no_file(path, f"a file that can be read ({reason})", None),)
        ) from None


def _no_file(path: Path, expected: str, hint: str | None) -> Problem:
    return Problem(str(path), None, None, "$", quoted(str(path)), expected, hint)


def _near(path: Path) -> str | None:
    try:
        return did_you_mean(path.name, os.listdir(path.parent))
    except (OSError, ValueError):
        return None


def _inside(path: Path, mode: int) -> str | None:
    if not stat.S_ISDIR(mode):
        return None
    found = sorted(each.name for each in path.glob("*.y*ml"))[:3]
    return f"it is a folder, with {', '.join(found)}" if found else "it is a folder"


def _decoded(file: str, content: bytes) -> str:
    if len(content) > BYTES_MAX:
        raise _unfit(file, "", f"at most {BYTES_MAX // 1024} KiB", "a larger file")
    if b"\0" in content:
        before = content[: content.index(b"\0")].decode("utf-8", "replace")
        raise _unfit(file, before, "text, saved as UTF-8", "a binary file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", "replace")
        raise _unfit(
            file,
            before,
            "text, saved as UTF-8",
            f"the byte 0x{content[error.start]:02x}",
        ) from None
    return _printable(file, text)


def _printable(file: str, text: str) -> str:
    if match := _UNPRINTABLE.search(text):
        found = quoted(match[0])
        raise _unfit(
            file, text[: match.start()], "text without control characters", found
        )
    return text


def _unfit(file: str, before: str, expected: str, found: str) -> InputError:
    line = before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    return InputError((Place(file, line, column).problem("$", found, expected),))
