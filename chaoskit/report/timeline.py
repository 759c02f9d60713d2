"""One trial as a drawing: its lives, what each asked of whom, and where it was struck.

Time runs down; each row is an event, in the history's order. At the left stands a bar
for each life; then come three lanes: the model, the tools, the stores. What a finding
rests on is marked. Long stretches without anything of interest are left out, and said.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaoskit.model.address import Edge
from chaoskit.model.calls import spoken
from chaoskit.model.history import (
    Applied,
    Crossed,
    Event,
    FaultFired,
    History,
    LifeContinued,
    LifeEnded,
    LifeStarted,
    RunEnded,
)
from chaoskit.model.services import EFFECTS

ROWS_MAX = 80
NEAR = 6
"""So many rows before and after one of interest are shown as well."""
TEXT_MAX = 90
LANES = ("model", "tools", "store")


@dataclass(frozen=True)
class Row:
    """One event as it is drawn.

    ``lane`` is the place of its mark, None for one of the life's own; ``kind`` is what
    it looks like: `call`, `effect`, `fault`, `life`, `end` or `over`. ``gap``
    counts the events that were left out before it.
    """

    seq: int
    life: int
    text: str
    lane: str | None = None
    kind: str = "call"
    marked: bool = False
    gap: int = 0


def rows(history: History, marked: Sequence[int]) -> tuple[Row, ...]:
    """What is drawn of a history; ``marked`` are the events of the finding."""
    drawn = [row for event in history if (row := _row(event, marked)) is not None]
    if len(drawn) <= ROWS_MAX:
        return tuple(drawn)
    return tuple(_near_what_matters(drawn))


def _near_what_matters(drawn: Sequence[Row]) -> Iterator[Row]:
    matter = [
        index
        for index, row in enumerate(drawn)
        if row.marked or row.kind in ("fault", "life", "end", "over")
    ]
    kept = {
        near
        for index in matter
        for near in range(index - NEAR, index + NEAR + 1)
        if 0 <= near < len(drawn)
    }
    if len(kept) > ROWS_MAX:
        kept = set(matter)
    last = -1
    for index in sorted(kept)[: 2 * ROWS_MAX]:
        row = drawn[index]
        yield row if index == last + 1 else _after_gap(row, index - last - 1)
        last = index


def _after_gap(row: Row, gap: int) -> Row:
    return Row(row.seq, row.life, row.text, row.lane, row.kind, row.marked, gap)


def _row(event: Event, marked: Sequence[int]) -> Row | None:
    said = _said(event)
    if said is None:
        return None
    text, lane, kind = said
    is_marked = event.seq in marked
    if len(text) > TEXT_MAX:
        text = f"{text[: TEXT_MAX - 1]}…"
    return Row(event.seq, event.life, text, lane, kind, is_marked)


def _said(event: Event) -> tuple[str, str | None, str] | None:
    match event:
        case LifeStarted():
            name = f" as {event.process}" if event.process else ""
            return f"life {event.life} starts ({event.purpose}){name}", None, "life"
        case LifeContinued():
            return f"life {event.life} goes on", None, "life"
        case LifeEnded():
            return f"life {event.life} {_how(event)}", None, "end"
        case FaultFired():
            return event.fault, None, "fault"
        case Applied():
            done = "does" if event.first else "had done"
            call = spoken(event.tool, event.args)
            key = f" key {event.idempotency_key}" if event.idempotency_key else ""
            return f"the tool {done} {call}{key}", "tools", "effect"
        case Crossed() if event.at.edge == Edge.BEFORE:
            service = event.at.operation.service
            place = event.address.removesuffix(f":{Edge.BEFORE}")
            return place, _lane(service), "call"
        case RunEnded():
            reason = f": {event.reason}" if event.reason else ""
            return f"the run is {event.outcome}{reason}", None, "over"
    return None


def _how(end: LifeEnded) -> str:
    if end.cause == "fault":
        return "is killed"
    if end.ending == "died":
        how = f"signal {end.signal}" if end.code is None else f"exit code {end.code}"
        return f"dies ({how})"
    return f"ends {end.ending}"


def _lane(service: str) -> str:
    if service == "llm":
        return "model"
    return "tools" if service in EFFECTS else "store"
