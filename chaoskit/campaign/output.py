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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from chaoskit.agents.output import blot
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
NO_INPUTS: Mapping[str, Path] = {}


class OutputError(Exception):
    """The output folder cannot be used; the text says why and what to do."""


@contextmanager
def claimed(out: Path, inputs: Mapping[str, Path] = NO_INPUTS) -> Iterator[Path]:
    """Hold the folder, emptied if it is one of ours; gives where trials go.

    ``inputs`` are files that it must not hold, by what they are, as "the scenario".

    Raises:
        OutputError: it holds something that no campaign wrote, or one of the inputs,
            is written to by another campaign, or cannot be written.
    """
    try:
        mark = _claim(out, inputs)
    except OSError as error:
        raise _unwritable(out, error) from error
    try:
        yield out.resolve() / TRIALS
    finally:
        os.close(mark)


@contextmanager
def blotted_if_cut_short(trials: Path, blots: Blots) -> Iterator[None]:
    """Whatever ends a campaign early: lives that were running leave no secret.

    A life's output is blotted when the life has settled, and these never did. Enter it
    before whatever ends them, so that nobody writes any more.
    """
    try:
        yield
    except BaseException:
        for path in _output_of_the_unsaved(trials):
            _blot_or_remove(path, blots)
        raise


def _output_of_the_unsaved(trials: Path) -> Iterator[Path]:
    for trial in trials.glob("*"):
        if not (trial / TRIAL).exists():
            yield from (p for p in trial.glob("*") if p.suffix in (".out", ".err"))


def _blot_or_remove(path: Path, blots: Blots) -> None:
    try:
        blot(path, blots)
    except (OSError, MemoryError):  # a full disk, say: nothing is better than that
        path.unlink(missing_ok=True)


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


def _claim(out: Path, inputs: Mapping[str, Path]) -> int:
    foreign = out.exists() and (not out.is_dir() or any(out.iterdir()))
    if foreign and not (out / MARK).exists():
        raise OutputError(
            f"{out} exists and was not written by chaoskit; "
            "name another folder with --out, or remove it"
        )
    _spare(out, inputs)
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


def _spare(out: Path, inputs: Mapping[str, Path]) -> None:
    """Refuse to empty a folder that holds what is to be tried."""
    folder = out.resolve()
    for what, path in inputs.items():
        # A link goes with the folder that holds it, wherever it leads.
        places = path.resolve(), path.parent.resolve() / path.name
        if any(folder in (place, *place.parents) for place in places):
            raise OutputError(
                f"{out} holds {what}, {path}, which would be removed with all that an "
                "earlier run left there; name another folder with --out, or move "
                f"{what}"
            )


def _empty(out: Path) -> None:
    # The folder itself stays: it may be somebody's mount or working directory. So does
    # the mark, lest an interruption makes the rest look like somebody else's.
    for entry in out.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != MARK:
            entry.unlink()


def inputs_of(loaded: Loaded) -> dict[str, Path]:
    """The files of a campaign that no output folder may hold, by what they are."""
    return {
        "the scenario": loaded.scenario_path,
        "the agent's manifest": loaded.manifest_path,
    }


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
