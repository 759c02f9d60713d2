"""What came of a self-test, judged from the reports of its campaigns alone."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from chaoskit import __version__
from chaoskit.selftest.catalogue import Specimen

OF_A_VERDICT = (0, 1, 3)
"""The exit codes of a campaign that came to one, whichever it is."""


@dataclass(frozen=True)
class Tested:
    """One specimen and what its campaign found.

    ``found`` says whether its own requirement was found broken; ``others`` are those
    that were found beside it, ``follows`` those that the report says come from it.
    ``needed`` is the number of faults that had struck when it was first found,
    ``schedule`` the smallest one that shows it. ``told`` is the campaign's own report,
    ``code`` what it exited with.
    """

    specimen: Specimen
    verdict: str
    told: str
    seconds: float
    found: bool = False
    others: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    trials: int = 0
    faults: int = 0
    kills: int = 0
    needed: int | None = None
    schedule: str | None = None
    doubts: tuple[str, ...] = ()
    code: int = 0

    @property
    def is_as_expected(self) -> bool:
        """A broken one is found by its own requirement alone, a correct one passes."""
        if self.code not in OF_A_VERDICT:
            return False
        if self.specimen.is_broken:
            return self.found and not self.others
        return self.verdict == "pass"

    @property
    def in_short(self) -> str:
        """What came of it, in half a line: ``shell_script: pass``."""
        why = next(iter((*self.others, *self.doubts)), "")
        return f"{self.specimen.name}: {self.verdict}{f' ({why})' if why else ''}"


@dataclass(frozen=True)
class Outcome:
    """A whole self-test."""

    tested: tuple[Tested, ...]
    quick: bool
    seconds: float

    @property
    def is_green(self) -> bool:
        """Whether every specimen came out as it must."""
        return bool(self.tested) and all(each.is_as_expected for each in self.tested)

    @property
    def broken(self) -> tuple[Tested, ...]:
        """What was to be found out."""
        return tuple(each for each in self.tested if each.specimen.is_broken)

    @property
    def correct(self) -> tuple[Tested, ...]:
        """What was to pass."""
        return tuple(each for each in self.tested if not each.specimen.is_broken)


def tested(
    specimen: Specimen,
    report: dict[str, Any],
    journal: Sequence[dict[str, Any]],
    told: str,
    seconds: float,
    code: int,
) -> Tested:
    """Read a campaign's report and the lines of its journal."""
    must = [each for each in report["findings"] if each["severity"] == "must"]
    own = specimen.label.requirement
    shown = [each for each in must if each["requirement"] == own]
    besides = [each for each in must if each["requirement"] != own]
    return Tested(
        specimen,
        report["verdict"],
        told,
        seconds,
        found=any(_shows(each, specimen, report) for each in shown),
        others=_ids(each for each in besides if not each["follows"]),
        follows=_ids(each for each in besides if each["follows"]),
        trials=report["trials"],
        faults=sum(report["faults"].values()),
        kills=report["kills"],
        needed=_needed(own, journal),
        schedule=shown[0]["schedule"] if shown else None,
        doubts=tuple(report["doubts"]),
        code=code,
    )


def _shows(finding: dict[str, Any], specimen: Specimen, report: dict[str, Any]) -> bool:
    """Whether it is the defect that was found, and no crash on the way to it.

    What needs a fault to be shown is not shown by a run that no fault struck: there the
    agent may just be unable to run here.
    """
    if not specimen.label.shows:
        return True
    return bool(finding["schedule"]) and sum(report["faults"].values()) > 0


def untested(specimen: Specimen, told: str, seconds: float, code: int = 0) -> Tested:
    """A campaign that left no report proves nothing; what it said is told."""
    return Tested(specimen, "none", told, seconds, code=code)


def _ids(findings: Iterator[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each["requirement"] for each in findings))


def _needed(own: str | None, journal: Sequence[dict[str, Any]]) -> int | None:
    """How many faults were scheduled up to the trial that first showed it."""
    struck = 0
    for line in journal:
        struck += len(line["schedule"].split(" + ")) if line["schedule"] else 0
        if own in line["findings"]:
            return struck
    return None


def as_json(outcome: Outcome) -> str:
    """The outcome for programs."""
    fields = {
        "chaoskit": __version__,
        "green": outcome.is_green,
        "quick": outcome.quick,
        "seconds": outcome.seconds,
        "specimens": [_fields(each) for each in outcome.tested],
    }
    return json.dumps(fields, indent=2) + "\n"


def _fields(each: Tested) -> dict[str, Any]:
    fields = asdict(each)
    specimen = fields.pop("specimen")
    del fields["told"]
    name, store, mode = (specimen[key] for key in ("name", "store", "mode"))
    label = each.specimen.label.model_dump()
    own = {"name": name, **label, "store": store, "mode": mode}
    return {**own, "as_expected": each.is_as_expected, **fields}
