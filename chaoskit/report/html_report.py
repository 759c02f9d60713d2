"""`report.html`: the verdict first, then each finding with a drawing of its trial."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup
from pydantic import JsonValue

from chaoskit.model.history import History
from chaoskit.model.report import Report, Shown
from chaoskit.model.verdict import Severity, Verdict
from chaoskit.report.drawing import Drawing
from chaoskit.report.page import page, whole
from chaoskit.report.text import crossings_missed, repaid
from chaoskit.report.timeline import rows

STORIES_MAX = 200
DRAWINGS_MAX = 25
FAULTS_MAX = 20
"""So many of a schedule's faults are listed; the command has them all."""


def as_html(report: Report, histories: Mapping[str, History]) -> str:
    """The whole report as one page.

    ``histories`` are those of the trials that findings name; a finding whose history is
    not among them has no drawing, and neither has one after many others.
    """
    shown = report.findings[:STORIES_MAX]
    found = histories if report.findings else {}
    stories = [
        Story(report, each, found.get(each.trial) if n < DRAWINGS_MAX else None)
        for n, each in enumerate(shown)
    ]
    return page(
        "campaign.html.j2",
        report=report,
        verdict=str(report.verdict),
        sentence=_sentence(report),
        facts=list(_facts(report)),
        missed=crossings_missed(report),
        stories=stories,
        more=len(report.findings) - len(stories),
    )


def _sentence(report: Report) -> str:
    """The verdict in words."""
    must = [s for s in report.findings if s.finding.severity is Severity.MUST]
    warnings = len(report.findings) - len(must)
    if report.verdict is Verdict.FAIL:
        broken = len({shown.finding.requirement for shown in must})
        return f"{_count(broken, 'requirement')} broken, as each story below shows."
    if report.verdict is Verdict.INCONCLUSIVE:
        return "Nothing was found, and yet this run proves nothing."
    also = f", {_count(warnings, 'warning')}" if warnings else ""
    return f"Every promise held, whatever was tried{also}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    yield "agent", report.agent
    yield "store", report.store
    yield "search", f"{report.strategy}, seed {report.seed}"
    yield "trials", f"{report.trials}, in {report.seconds:.1f} s"
    struck = (f"{count} x {kind}" for kind, count in report.faults.items())
    yield "struck", ", ".join(struck) or _count(report.kills, "kill")
    if report.states is not None:
        deep = f", up to {_count(report.depth or 0, 'kill')} deep"
        yield "crash states", f"{report.states}{deep}"
    if report.wrecks is not None:
        yield "wrecks", f"{_count(report.wrecks, 'different world')} left by deaths"
    yield from (("tokens", told) for told in repaid(report))
    if report.periodic:
        yield "periodic", ", ".join(report.periodic)
    if report.volatile:
        yield "volatile", ", ".join(report.volatile)
    if report.volatile_listed:
        yield "volatile, as the scenario says", ", ".join(report.volatile_listed)
    yield "chaoskit", report.chaoskit


@dataclass(frozen=True)
class Story:
    """One finding as the page tells it."""

    report: Report
    shown: Shown
    history: History | None

    @property
    def is_warning(self) -> bool:
        """Whether it only warns."""
        return self.shown.finding.severity is Severity.SHOULD

    @property
    def replay(self) -> Markup:
        """The command that shows it again."""
        return whole(self.report.replay_of(self.shown.schedule))

    @property
    def expected(self) -> str:
        """What should have been, as JSON where it is no text."""
        return _told(self.shown.finding.expected)

    @property
    def observed(self) -> str:
        """What was, as JSON where it is no text."""
        return _told(self.shown.finding.observed)

    @property
    def faults(self) -> tuple[str, ...]:
        """The schedule, fault by fault; of many only the last ones."""
        return tuple(map(str, self.shown.schedule.faults[self.left_out :]))

    @property
    def left_out(self) -> int:
        """How many faults come before those."""
        return max(0, len(self.shown.schedule) - FAULTS_MAX)

    @cached_property
    def drawing(self) -> Drawing | None:
        """Its trial; None where there is no history of it."""
        if not self.history:
            return None
        return Drawing(rows(self.history, self.shown.finding.events))


def _told(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2)
