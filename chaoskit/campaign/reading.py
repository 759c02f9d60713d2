"""Reads back what a campaign has saved; see `untrusted` for how, `saved` for what."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from chaoskit.campaign import saved
from chaoskit.campaign.saved import (
    CampaignFile,
    ReportFile,
    ThinnedFile,
    TrialFile,
    VerdictFile,
)
from chaoskit.campaign.untrusted import (
    ONLY_FILES,
    enter,
    parsed,
    path_of,
    read,
    unreadable,
    wrong,
)
from chaoskit.model.address import Address
from chaoskit.model.errors import quoted
from chaoskit.model.history import Crossed, Event, FaultFired, from_line
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.trial import Trial

_EVENT_KINDS = "an event of a history (see chaoskit doc contract)"
_AGAIN = "run the campaign again; what it leaves then can be judged again"


@dataclass(frozen=True)
class SavedTrial:
    """A trial that was judged, with the bytes of that verdict; None if it is gone."""

    trial: Trial
    golden: bool
    verdict: str | None
    found: VerdictFile | None


@dataclass(frozen=True)
class SavedCampaign:
    """A campaign's folder. ``only`` is the one trial that was asked for.

    ``removed`` is how many trials that showed nothing were taken out since.
    """

    root: Path
    file: CampaignFile
    report: ReportFile | None
    names: tuple[str, ...]
    only: str | None = None
    removed: int = 0

    def trials(self) -> Iterator[SavedTrial | str]:
        """Every trial, read as it is asked for; of one cut short, its name.

        Raises:
            InputError: it is damaged.
        """
        for name in self.names:
            yield self.trial(name)

    def trial(self, name: str) -> SavedTrial | str:
        """One trial; its name where it was cut short before it was judged.

        Raises:
            InputError: it is damaged.
        """
        place = (saved.TRIALS, name)
        text = read(self.root, *place, saved.TRIAL)
        if text is None:
            return name
        path = self.root.joinpath(*place)
        file = parsed(TrialFile, text, path / saved.TRIAL)
        trial = _trial(self.root, file, name)
        said = read(self.root, *place, saved.VERDICT)
        found = said and parsed(VerdictFile, said, path / saved.VERDICT)
        return SavedTrial(trial, file.golden, said, found or None)


@contextmanager
def opened(path: Path) -> Iterator[SavedCampaign]:
    """A campaign's folder, or that of one of its trials, held against campaigns.

    Raises:
        InputError: it is no such folder, is damaged, or is being written to.
    """
    root, only = _root_of(path)
    with _held(root):
        yield _campaign(root, only)


def _root_of(path: Path) -> tuple[Path, str | None]:
    if not path.is_dir():
        expected = "the folder of a campaign, or of one of its trials"
        raise wrong(path, None, quoted(str(path)), expected)
    whole = Path(os.path.abspath(path))
    is_trial = whole.parent.name == saved.TRIALS
    if is_trial and not os.path.lexists(path / saved.CAMPAIGN):
        return Path(os.path.relpath(whole.parents[1])), whole.name
    return path, None


def _campaign(root: Path, only: str | None) -> SavedCampaign:
    text = read(root, saved.CAMPAIGN)
    if text is None:
        hint = f"an older chaoskit writes none; {_AGAIN}"
        expected = "a file that every campaign leaves"
        raise wrong(root / saved.CAMPAIGN, None, "no such file", expected, hint)
    file = parsed(CampaignFile, text, root / saved.CAMPAIGN)
    said = read(root, saved.REPORT)
    report = said and parsed(ReportFile, said, root / saved.REPORT)
    names = (only,) if only is not None else tuple(_names(root))
    return SavedCampaign(root, file, report or None, names, only, _removed(root))


def _removed(root: Path) -> int:
    text, path = read(root, saved.THINNED), root / saved.THINNED
    return 0 if text is None else parsed(ThinnedFile, text, path).removed


@contextmanager
def _held(root: Path) -> Iterator[None]:
    """Keep campaigns from writing to it; one that was copied may have no mark."""
    mark = None
    with suppress(OSError):
        mark = os.open(root / saved.MARK, ONLY_FILES)
    try:
        if mark is not None:
            fcntl.flock(mark, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        expected = "a campaign that has ended; this one is still being written"
        raise wrong(root, None, quoted(str(root)), expected) from None
    finally:
        if mark is not None:
            os.close(mark)


def _names(root: Path) -> Iterator[str]:
    """The trials' folders, in order."""
    try:
        folder = enter(root, saved.TRIALS)
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable(root / saved.TRIALS, error) from error
    try:
        yield from sorted(n for n in os.listdir(folder) if not n.startswith("."))
    finally:
        os.close(folder)


def _trial(root: Path, file: TrialFile, name: str) -> Trial:
    path = root / saved.TRIALS / name
    if file.name != name:
        raise wrong(
            path / saved.TRIAL, None, quoted(file.name), f"the folder's name, {name}"
        )
    try:
        schedule = Schedule.parse(file.schedule)
        unfired = tuple(map(Fault.parse, file.unfired))
    except ValueError as error:
        raise wrong(
            path / saved.TRIAL, None, "a schedule that is none", str(error)
        ) from None
    history = tuple(_history(root, name))
    return Trial(name, file.run_id, schedule, history, unfired)


def _history(root: Path, name: str) -> Iterator[Event]:
    path = root / saved.TRIALS / name / saved.HISTORY
    text = read(root, saved.TRIALS, name, saved.HISTORY)
    if text is None:
        raise wrong(path, None, "no such file", "the history of a trial that ended")
    *lines, rest = text.split("\n")
    if rest or not lines:
        last = len(lines) + 1
        raise wrong(path, last, quoted(rest), "a whole line", "it was cut off")
    for number, line in enumerate(lines, 1):
        yield _event(line, number, path)


def _event(line: str, number: int, path: Path) -> Event:
    try:
        event = from_line(line)
        if isinstance(event, Crossed):
            Address.parse(event.address)
        if isinstance(event, FaultFired):
            Fault.parse(event.fault)
    except ValidationError as error:
        why = _first_of(error)
        raise wrong(path, number, quoted(line), _EVENT_KINDS, why) from None
    except ValueError as error:
        raise wrong(path, number, quoted(line), str(error)) from None
    if event.seq != number - 1:
        expected = f"the event with seq {number - 1}: a line is missing, or is twice"
        raise wrong(path, number, f"seq {event.seq}", expected)
    return event


def _first_of(error: ValidationError) -> str:
    first: Any = error.errors(include_url=False)[0]
    where = path_of(first["loc"]).removeprefix("$").lstrip(".")
    return f"{where}: {first['msg']}" if where else str(first["msg"])
