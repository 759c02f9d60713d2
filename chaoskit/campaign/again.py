"""Judges saved trials again, and says what is judged otherwise than before."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from chaoskit import __version__
from chaoskit.campaign.fits import misfits
from chaoskit.campaign.output import OutputError, claimed, full_disk_is_told
from chaoskit.campaign.reading import SavedCampaign, SavedTrial, opened
from chaoskit.campaign.saved import VERDICT
from chaoskit.campaign.weighed import Again as Again
from chaoskit.campaign.weighed import Outcome as Outcome
from chaoskit.checks import Judgement, judge
from chaoskit.checks.case import NOTHING
from chaoskit.model.errors import InputError, Problem, printable
from chaoskit.model.scenario import PromiseId
from chaoskit.report.text import writable


def judge_folder(path: Path, promises: Sequence[PromiseId] = ()) -> Outcome:
    """Judge a campaign's folder, or a trial's, by the checks of today.

    Raises:
        InputError: the folder is none, or is damaged: every problem of it.
    """
    trials: list[Again] = []
    cut: list[str] = []
    problems: list[Problem] = []
    with opened(path) as campaign:
        for name in campaign.names:
            try:
                found = campaign.trial(name)
                if isinstance(found, str):
                    cut.append(found)
                else:
                    trials.append(Again(found, judged(campaign, found, promises)))
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(tuple(problems))
    return Outcome(campaign, tuple(trials), tuple(cut), tuple(promises))


def judged(
    campaign: SavedCampaign, saved: SavedTrial, promises: Sequence[PromiseId] = ()
) -> Judgement:
    """Put a saved trial before the checks, or before those of some promises only.

    One whose faults are not those of its history has that as a doubt, and is no pass.

    Raises:
        InputError: its events make no sense together.
    """
    scenario = campaign.file.scenario
    if promises:
        scenario = scenario.model_copy(update={"promises": tuple(promises)})
    golden = campaign.file.golden if saved.golden else None
    manifest = campaign.file.manifest
    try:
        found = judge(saved.trial, scenario, manifest, golden or NOTHING)
        odd = tuple(misfits(saved.trial, campaign))
        return replace(found, doubts=(*found.doubts, *odd))
    except Exception as error:
        place = campaign.root / "trials" / saved.trial.name / "history.jsonl"
        expected = f"events that can be judged together ({error!r})"
        problem = Problem(str(place), None, None, "$", "others", expected)
        raise InputError((problem,)) from error


def write(outcome: Outcome, out: Path) -> None:
    """Leave each verdict as of now, laid out as in a campaign's folder.

    Raises:
        OutputError: the folder cannot be used.
    """
    here, there = outcome.campaign.root.resolve(), out.resolve()
    if here == there or there in here.parents or here in there.parents:
        raise OutputError(
            f"{out} and {outcome.campaign.root} hold one another, and what was saved "
            "stays as it is; name another folder with --out"
        )
    with full_disk_is_told(out), claimed(out) as folder:
        for each in outcome.trials:
            place = folder / each.before.trial.name
            place.mkdir(parents=True)
            (place / VERDICT).write_text(each.text, encoding="utf-8")


def as_text(outcome: Outcome) -> str:
    """What came of it, for a terminal or a log."""
    return writable("\n".join(_lines(outcome)) + "\n")


def _lines(outcome: Outcome) -> Iterator[str]:
    file, report = outcome.campaign.file, outcome.campaign.report
    what = (
        file.scenario.name
        if outcome.campaign.only is None
        else (f"{file.scenario.name}, trial {outcome.campaign.only}")
    )
    yield f"{what}: {str(outcome.verdict).upper()}, judged again"
    yield f"  agent      {file.manifest.name}, store {file.manifest.store}"
    yield from (f"  {line}" for line in _compared(outcome))
    is_whole = outcome.campaign.only is None and not outcome.promises
    if is_whole and report and report.verdict != str(outcome.verdict):
        yield f"  verdict    was {report.verdict}, is {outcome.verdict}"
    if file.chaoskit != __version__:
        by = f"saved by chaoskit {printable(file.chaoskit)}, judged by {__version__}"
        yield f"  note       {by}"
    for number, (trial, finding) in enumerate(outcome.findings, 1):
        yield ""
        yield f"{number}. {finding.requirement}"
        yield from (f"   {printable(line)}" for line in finding.message.split("\n"))
        yield f"   trial:    {trial}"
    if outcome.doubts:
        yield ""
        yield "It proves less than it might:"
        yield from (f"  - {printable(doubt)}" for doubt in outcome.doubts)
    for each in outcome.changed:
        yield ""
        yield from _difference(each)


def _compared(outcome: Outcome) -> Iterator[str]:
    count = len(outcome.trials)
    if outcome.promises:
        yield f"promises   {', '.join(outcome.promises)}; {count} trials"
        return
    changed = len(outcome.changed)
    yield f"verdicts   {count - changed} of {count} are the same, byte for byte"


def _difference(each: Again) -> Iterator[str]:
    name = each.before.trial.name
    if each.before.verdict is None:
        yield f"trial {name}: it had no verdict; it is {each.judgement.verdict}"
        return
    yield f"trial {name} is judged otherwise (- as it was, + as it is):"
    before, now = each.before.verdict.split("\n"), each.text.split("\n")
    lines = difflib.unified_diff(before, now, n=0, lineterm="")
    yield from (f"  {printable(line)}" for line in list(lines)[2:])
