"""The folder that a campaign leaves: its report, its journal, and each trial.

`trials.jsonl` is the journal: a line for each trial, as it is judged; `saved` says what
else is kept of it. While a campaign runs it holds a lock on its mark, so that two never
write to the same folder.
"""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaoskit.campaign.saved import (
    CAMPAIGN,
    HISTORY,
    MARK,
    REPORT,
    TRIAL,
    TRIALS,
    VERDICT,
    campaign_text,
    trial_text,
    verdict_text,
)
from chaoskit.checks import Judgement
from chaoskit.checks.case import Golden
from chaoskit.gate import Blots
from chaoskit.loading import Loaded
from chaoskit.model.history import History, from_line
from chaoskit.model.report import Report
from chaoskit.model.trial import Trial
from chaoskit.report import as_html, as_json, as_junit, as_text

NO_BLOTS = Blots({})


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
        yield out.resolve() / TRIALS
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
    if foreign and not (out / MARK).exists():
        raise OutputError(
            f"{out} exists and was not written by chaoskit; "
            "name another folder with --out, or remove it"
        )
    out.mkdir(parents=True, exist_ok=True)
    mark = os.open(out / MARK, os.O_RDWR | os.O_CREAT, 0o644)
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
        elif entry.name != MARK:
            entry.unlink()


def introduce(out: Path, loaded: Loaded, golden: Golden | None = None) -> None:
    """Save what is tried, and once it is known what the fault-free runs agree on.

    Raises:
        OutputError: it cannot be written.
    """
    scenario, manifest = loaded.scenario, loaded.manifest
    text = campaign_text(scenario, manifest, golden)
    with _told(out):
        _replace(out / CAMPAIGN, text)


def keep(out: Path, trial: Trial, judgement: Judgement, *, golden: bool) -> None:
    """Save a trial and its verdict; ``golden``: it was held against fault-free runs.

    Raises:
        OutputError: it cannot be written.
    """
    folder = out / TRIALS / trial.name
    with _told(out):
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / VERDICT, verdict_text(judgement))
        _replace(folder / TRIAL, trial_text(trial, golden=golden))


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all: a harness may be killed at any moment."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


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
    with _told(out), (out / "trials.jsonl").open("a", encoding="utf-8") as journal:
        journal.write(json.dumps(fields) + "\n")


def leave(report: Report, out: Path, blots: Blots = NO_BLOTS) -> None:
    """Write the report for programs and for people, without secrets.

    Raises:
        OutputError: it cannot be written.
    """
    with _told(out):
        _replace(out / REPORT, blots.text(as_json(report)))
        _replace(out / "report.txt", blots.text(as_text(report)))
        _replace(out / "junit.xml", blots.text(as_junit(report)))
        page = as_html(report, _histories(report, out / TRIALS))
        _replace(out / "report.html", blots.text(page))


def _histories(report: Report, trials: Path) -> dict[str, History]:
    """Those of the trials that the findings name."""
    names = dict.fromkeys(shown.trial for shown in report.findings)
    found = {name: trials / name / HISTORY for name in names}
    return {
        name: tuple(map(from_line, path.read_text(encoding="utf-8").splitlines()))
        for name, path in found.items()
        if path.is_file()
    }


@contextmanager
def _told(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unwritable(out, error) from error


def _unwritable(out: Path, error: OSError) -> OutputError:
    why = error.strerror or error
    return OutputError(f"{out} cannot be written: {why}; name another with --out")
