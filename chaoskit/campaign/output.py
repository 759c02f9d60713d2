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
        raise OutputError(
            f"{out} cannot be written: {error.strerror}; name another with --out"
        ) from error
    return out.resolve() / "trials"


def _empty(out: Path) -> None:
    foreign = out.exists() and (not out.is_dir() or any(out.iterdir()))
    if foreign and not (out / _MARK).exists():
        raise OutputError(
            f"{out} exists and was not written by chaoskit; "
            "name another folder with --out, or remove it"
        )
    if out.is_dir():
        # The folder itself stays: it may be somebody's mount or working directory.
        for entry in out.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    out.mkdir(parents=True, exist_ok=True)


def leave(report: Report, out: Path) -> None:
    """Write the report for programs and for people."""
    (out / "report.json").write_text(as_json(report))
    (out / "report.txt").write_text(as_text(report))
