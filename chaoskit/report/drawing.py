"""A timeline laid out: lives at the left, the gate, three lanes, and the words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaoskit.report.happenings import Row
from chaoskit.report.timeline import LANES

ROW, TOP = 24, 46
_NUMBERS, _LIFE, _LANE, _GATE = 50, 20, 64, 26
_CHARACTER = 7.3
TEXT_MAX = 110


@dataclass(frozen=True)
class Mark:
    """A row, and where its parts stand, in pixels."""

    row: Row
    y: int
    life_x: int
    lane_x: int | None

    @property
    def words(self) -> tuple[str, str]:
        """Its text and what adds to it, cut to fit a line."""
        text, more = _one_line(self.row.text), _one_line(self.row.more)
        if len(text) > TEXT_MAX:
            return f"{text[: TEXT_MAX - 1]}…", ""
        room = TEXT_MAX - len(text)
        return text, more if len(more) <= room else f"{more[: max(0, room - 1)]}…"


@dataclass(frozen=True)
class Bar:
    """A life, from its first row to its last; ``open``: it goes on beyond them."""

    life: int
    x: int
    y: int
    height: int


class Drawing:
    """Where everything stands; one drawing for one tuple of rows."""

    def __init__(self, drawn: Sequence[Row]) -> None:
        spans = dict(_spans(drawn))
        columns = _columns(spans)
        width = _LIFE * (1 + max(columns.values(), default=0))
        self.gate_x = _NUMBERS + width + _GATE
        self.lanes = [
            (name, self.gate_x + round(_LANE * (n + 0.7)))
            for n, name in enumerate(LANES)
        ]
        self.text_x = self.lanes[-1][1] + 34
        self.height = TOP + len(drawn) * ROW
        self.bars = [
            Bar(life, _life_x(columns[life]), _y(first), (last - first) * ROW)
            for life, (first, last) in spans.items()
        ]
        at = dict(self.lanes)
        self.marks = [
            Mark(row, _y(n), _life_x(columns.get(row.life, 0)), at.get(row.lane))
            for n, row in enumerate(drawn)
        ]
        longest = max((sum(map(len, mark.words)) for mark in self.marks), default=0)
        self.width = self.text_x + round((longest + 3) * _CHARACTER)


def _one_line(text: str) -> str:
    return " ".join(text[: 4 * TEXT_MAX].split())


def _y(index: int) -> int:
    return TOP + index * ROW


def _life_x(column: int) -> int:
    return _NUMBERS + _LIFE // 2 + column * _LIFE


def _spans(drawn: Sequence[Row]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Each life, with its first row and its last."""
    own: dict[int, list[int]] = {}
    for index, row in enumerate(drawn):
        if row.kind not in ("over", "gap") and row.life >= 0:
            own.setdefault(row.life, []).append(index)
    for life, indexes in own.items():
        yield life, (indexes[0], indexes[-1])


def _columns(spans: dict[int, tuple[int, int]]) -> dict[int, int]:
    """Lives that are there at the same time stand beside each other."""
    columns: dict[int, int] = {}
    for life, (first, last) in spans.items():
        taken = {
            columns[other]
            for other, (begin, end) in spans.items()
            if other in columns and begin <= last and first <= end
        }
        columns[life] = next(n for n in range(len(spans)) if n not in taken)
    return columns
