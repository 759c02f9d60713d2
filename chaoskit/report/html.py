"""`report.html`: the verdict first, then each finding with a drawing of its trial."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from chaoskit.model.history import History
from chaoskit.model.report import Report, Shown
from chaoskit.model.verdict import Severity
from chaoskit.report.page import page
from chaoskit.report.timeline import LANES, Row, rows

_ROW, _TOP = 22, 34
_LIFE_WIDTH, _LIVES_SHOWN_MAX, _LANE_WIDTH = 26, 8, 74


def as_html(report: Report, histories: Mapping[str, History]) -> str:
    """The whole report as one page.

    ``histories`` are those of the trials that findings name; a finding whose history is
    not among them has no drawing.
    """
    return page(
        "campaign.html.j2",
        report=report,
        findings=[_Story(report, each, histories) for each in report.findings],
    )


@dataclass(frozen=True)
class _Story:
    """One finding as the page tells it."""

    report: Report
    shown: Shown
    histories: Mapping[str, History]

    @property
    def is_warning(self) -> bool:
        return self.shown.finding.severity is Severity.SHOULD

    @property
    def replay(self) -> str:
        return self.report.replay_of(self.shown.schedule)

    @cached_property
    def drawing(self) -> "Drawing | None":
        history = self.histories.get(self.shown.trial)
        if not history:
            return None
        return Drawing(rows(history, self.shown.finding.events))


@dataclass(frozen=True)
class Mark:
    """A row, and where its parts stand in the drawing, in pixels."""

    row: Row
    y: int
    life_x: int
    lane_x: int | None


@dataclass(frozen=True)
class Bar:
    """A life, from its first row to its last."""

    life: int
    x: int
    y: int
    height: int


class Drawing:
    """A timeline laid out: bars for lives at the left, lanes, then the words."""

    def __init__(self, drawn: Sequence[Row]) -> None:
        lives = sorted({row.life for row in drawn if row.kind != "over"})
        columns = {life: n % _LIVES_SHOWN_MAX for n, life in enumerate(lives)}
        self.lanes_x = (min(len(lives), _LIVES_SHOWN_MAX) + 1) * _LIFE_WIDTH
        self.lanes = [
            (name, self.lanes_x + n * _LANE_WIDTH) for n, name in enumerate(LANES)
        ]
        self.text_x = self.lanes_x + len(LANES) * _LANE_WIDTH - _LANE_WIDTH // 2 + 12
        at = dict(self.lanes)
        self.marks = [
            Mark(
                row,
                _TOP + n * _ROW,
                (columns.get(row.life, 0) + 1) * _LIFE_WIDTH,
                at[row.lane] if row.lane else None,
            )
            for n, row in enumerate(drawn)
        ]
        self.bars = [self._bar(life) for life in lives]
        self.height = _TOP + len(drawn) * _ROW
        longest = max((len(row.text) for row in drawn), default=0)
        self.width = self.text_x + round(longest * 7.3) + 60

    def _bar(self, life: int) -> Bar:
        own = [m for m in self.marks if m.row.life == life and m.row.kind != "over"]
        first, last = own[0], own[-1]
        return Bar(life, first.life_x, first.y, max(1, last.y - first.y))
