"""The folder that a campaign leaves: its report, and a folder for each trial."""

import shutil
from pathlib import Path

from chaoskit.model.report import Report
from chaoskit.report import as_json, as_text

_MARK = ".chaoskit"


class OutputError(Exception):
    """The output folder cannot be used; the text says why and what to do."""


def prepare(out: Path) -> Path:
    """Empty the folder if it is one of ours; returns where trials go.

    Raises:
        OutputError: it holds something that no campaign wrote, or cannot be written.
    """
    try:
        _empty(out)
        (out / _MARK).touch()
    except OSError as error:
        raise _unwritable(out, error) from error
    return out.resolve() / "trials"


def _empty(out: Path) -> None:
    foreign = out.exists() and (not out.is_dir() or any(out.iterdir()))
    if foreign and not (out / _MARK).exists():
        raise OutputError(
            f"{out} exists and was not written by chaoskit; "
            "name another folder with --out, or remove it"
        )
    out.mkdir(parents=True, exist_ok=True)
    # The folder itself stays: it may be somebody's mount or working directory. So does
    # the mark, lest an interruption makes the rest look like somebody else's.
    for entry in out.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != _MARK:
            entry.unlink()


def leave(report: Report, out: Path) -> None:
    """Write the report for programs and for people.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        (out / "report.json").write_text(as_json(report), encoding="utf-8")
        (out / "report.txt").write_text(as_text(report), encoding="utf-8")
    except OSError as error:
        raise _unwritable(out, error) from error


def _unwritable(out: Path, error: OSError) -> OutputError:
    why = error.strerror or error
    return OutputError(f"{out} cannot be written: {why}; name another with --out")
