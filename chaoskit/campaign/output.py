"""The folder that a campaign leaves: its report, its journal, and each trial.

`trials.jsonl` is the journal: a line for each trial, as it is judged. While a campaign
runs it holds a lock on its mark, so that two never write to the same folder.
"""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaoskit.checks import Judgement
from chaoskit.model.report import Report
from chaoskit.model.trial import Trial
from chaoskit.report import as_json, as_text

_MARK = ".chaoskit"


class OutputError(Exception):
    """The output folder cannot be used; the text says why and what to do."""


@contextmanager
def claimed(out: Path) -> Iterator[Path]:
    """Hold the folder, emptied if it is one of ours; gives where trials go.

    Raises:
        OutputError: it holds something that no campaign wrote, is written to by
            another campaign, or cannot be written.
    """
    try:
        mark = _claim(out)
    except OSError as error:
        raise _unwritable(out, error) from error
    try:
        yield out.resolve() / "trials"
    finally:
        os.close(mark)


@contextmanager
def full_disk_is_told(out: Path) -> Iterator[None]:
    """Whoever hits it, a worker too: a full disk is no fault of ours.

    Raises:
        OutputError: no space is left.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _unwritable(out, error) from error
        raise


def _claim(out: Path) -> int:
    foreign = out.exists() and (not out.is_dir() or any(out.iterdir()))
    if foreign and not (out / _MARK).exists():
        raise OutputError(
            f"{out} exists and was not written by chaoskit; "
            "name another folder with --out, or remove it"
        )
    out.mkdir(parents=True, exist_ok=True)
    mark = os.open(out / _MARK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _empty(out)
    except BlockingIOError:
        os.close(mark)
        raise OutputError(
            f"another campaign is writing to {out}; name another folder with --out, "
            "or wait for it to end"
        ) from None
    except BaseException:
        os.close(mark)
        raise
    return mark


def _empty(out: Path) -> None:
    # The folder itself stays: it may be somebody's mount or working directory. So does
    # the mark, lest an interruption makes the rest look like somebody else's.
    for entry in out.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != _MARK:
            entry.unlink()


def note(out: Path, trial: Trial, judgement: Judgement) -> None:
    """Add a trial to the journal.

    Raises:
        OutputError: it cannot be written.
    """
    fields = {
        "trial": trial.name,
        "schedule": str(trial.schedule),
        "outcome": trial.ended.outcome,
        "verdict": str(judgement.verdict),
        "findings": [finding.requirement for finding in judgement.findings],
        "doubts": list(judgement.doubts),
    }
    try:
        with (out / "trials.jsonl").open("a", encoding="utf-8") as journal:
            journal.write(json.dumps(fields) + "\n")
    except OSError as error:
        raise _unwritable(out, error) from error


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
