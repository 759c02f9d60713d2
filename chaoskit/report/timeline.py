"""One trial in rows: its lives, what each asked of whom, and where it was struck.

Each row is a message, or something that happened to a life, in the history's order. A
message is one row, however many events it made: it arrived, it was applied, it was
answered, or it was held at the gate. What a finding rests on is marked. Of a long
history the rows near that are kept, and it is said how many are not.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chaoskit.model.address import Edge
from chaoskit.model.calls import Identity, identity, spoken
from chaoskit.model.history import (
    Applied,
    Asked,
    Crossed,
    Delivered,
    Event,
    FaultFired,
    History,
    LifeEnded,
)
from chaoskit.model.schedule import Fault
from chaoskit.model.services import EFFECTS, STORES
from chaoskit.report.happenings import Row, happened

ROWS_MAX = 70
LANES = ("model", "tools", "store")


def rows(history: History, marked: Sequence[int]) -> tuple[Row, ...]:
    """What is drawn of a history; ``marked`` are the events of the finding."""
    told = _Teller(frozenset(marked))
    for event in history:
        told.take(event)
    return tuple(_near_what_matters(told.rows))


@dataclass
class _Teller:
    """Puts events together into rows."""

    marked: frozenset[int]
    rows: list[Row] = field(default_factory=list)
    _at: dict[str, int] = field(default_factory=dict)
    _by_message: dict[int, int] = field(default_factory=dict)
    _said: dict[str, Asked] = field(default_factory=dict)
    _sent: dict[int, Delivered] = field(default_factory=dict)
    _times: Counter[Identity] = field(default_factory=Counter)

    def take(self, event: Event) -> None:
        """The next event of the history."""
        match event:
            case Asked():
                self._said[event.place] = event
            case Delivered():
                self._sent[event.life] = event
            case Crossed():
                self._crossed(event)
            case Applied():
                self._applied(event)
            case FaultFired():
                self._struck(event)
            case LifeEnded() if self._is_told_of(event):
                self._mark(len(self.rows) - 1, event)
            case _:
                self._add(happened(event, is_marked=event.seq in self.marked))

    def _add(self, row: Row | None) -> None:
        if row is not None:
            is_marked = row.marked or row.seq in self.marked
            self.rows.append(replace(row, marked=is_marked))

    def _mark(self, index: int, event: Event, **changes: Any) -> None:
        self.rows[index] = self._lit(replace(self.rows[index], **changes), event)

    def _crossed(self, event: Crossed) -> None:
        place, _, edge = event.address.partition(f"#{event.at.nth}:")
        place = f"{place}#{event.at.nth}"
        if edge == str(Edge.BEFORE):
            self._at[place] = len(self.rows)
            self._add(self._message(event, place))
        elif edge == str(Edge.AFTER) and place in self._at:
            self._mark(self._at[place], event, passed=True, answered=not event.late)

    def _message(self, event: Crossed, place: str) -> Row:
        operation, nth = event.at.operation, event.at.nth
        lane = _lane(operation.service)
        row = Row(event.seq, event.life, "call", f"{operation}#{nth}", lane=lane)
        asked = self._said.pop(place, None)
        if asked is not None:
            more = f"turn {asked.turn} {asked.problem or ''}".strip()
            return self._lit(replace(row, text="asks the model", more=more), asked)
        sent = self._sent.pop(event.life, None) if lane == "tools" else None
        if sent is None:
            return row
        self._by_message[sent.message] = len(self.rows)
        key = f"key {sent.idempotency_key}" if sent.idempotency_key else "no key"
        text = spoken(sent.tool, sent.args)
        return self._lit(replace(row, text=text, more=key), sent)

    def _lit(self, row: Row, event: Event) -> Row:
        """The row, marked where the finding rests on an event that it tells of."""
        is_marked = event.seq in self.marked
        return replace(row, seq=event.seq, marked=True) if is_marked else row

    def _applied(self, event: Applied) -> None:
        self._times[identity(event)] += event.first
        times = self._times[identity(event)]
        done = "applied" if event.first else "answered as before"
        if event.first and times > 1:
            done = f"applied AGAIN: {times} times now"
        index = self._by_message.get(event.message)
        if index is None or event.late:
            late = f"{done}, late: its life was over"
            text = spoken(event.tool, event.args)
            self._add(Row(event.seq, event.life, "call", text, late, "tools", True))
            self._mark(len(self.rows) - 1, event, effect=event.first)
            return
        more = f"{self.rows[index].more}: {done}"
        self._mark(index, event, more=more, effect=event.first, passed=True)

    def _struck(self, event: FaultFired) -> None:
        fault = Fault.parse(event.fault)
        place = str(fault.at).removesuffix(f":{fault.at.edge}")
        if place in self._at and fault.spoils_its_message | fault.ends_its_life:
            self._mark(self._at[place], event, answered=False)
        what, message = event.fault.partition("@")[0], place.partition(":")[2]
        how = _EDGES.get(str(fault.at.edge), "inside the reply of {}")
        idle = "; it found nothing to do" if event.idle else ""
        text = f"{what} {how.replace('{}', message)}{idle}"
        self._add(Row(event.seq, event.life, "fault", text, ends=fault.ends_its_life))

    def _is_told_of(self, event: LifeEnded) -> bool:
        """Whether the row before says that it was killed."""
        last = self.rows[-1] if self.rows else None
        is_same = last is not None and last.ends and last.life == event.life
        return is_same and event.cause in ("fault", "restored")


_EDGES = {
    "before": "before {}, of which nothing was done",
    "after": "after {} was done, its reply held",
}


def _lane(service: str) -> str:
    if service in STORES:
        return "store"
    return "tools" if service in EFFECTS else "model" if service == "llm" else ""


def _near_what_matters(drawn: Sequence[Row]) -> Iterator[Row]:
    """The rows that are kept, and a row for each stretch that is not."""
    kept = _kept(drawn)
    left_out: list[Row] = []
    for index, row in enumerate(drawn):
        if index not in kept:
            left_out.append(row)
            continue
        if left_out:
            yield Row(row.seq, row.life, "gap", _gap(left_out))
        left_out = []
        yield row


def _gap(left_out: Sequence[Row]) -> str:
    """What is left out, in words."""
    faults = sum(row.kind == "fault" for row in left_out)
    struck = f", {faults} of them faults" if faults else ""
    return f"left out here: {len(left_out)} rows{struck}"


def _kept(drawn: Sequence[Row]) -> frozenset[int]:
    """The first and the last, and those nearest to one that is marked."""
    last = len(drawn) - 1
    marks = [n for n, row in enumerate(drawn) if row.marked][:ROWS_MAX] or [last]

    def distance(index: int) -> int:
        return 0 if index in (0, last) else min(abs(index - mark) for mark in marks)

    return frozenset(sorted(range(len(drawn)), key=distance)[:ROWS_MAX])
