"""A row of a timeline, and what happens beside messages in words: lives and looks."""

from dataclasses import dataclass

from chaoskit.model.errors import quoted
from chaoskit.model.history import (
    ClockLeapt,
    Event,
    Inspected,
    Leaked,
    LifeContinued,
    LifeEnded,
    LifeStarted,
    Logged,
    RunEnded,
    StatusSeen,
)

LOG_SHOWN_MAX = 200


@dataclass(frozen=True)
class Row:
    """One thing that happened, as it is drawn.

    ``seq`` is an event of it, one that a finding rests on where there is one. ``kind``:
    ``call`` (a message), ``fault``, ``start``, ``end``, ``other``, ``over`` or ``gap``
    (a stretch that is left out). Of a message: ``lane`` is whom it went to, ``passed``
    whether it came to be applied, ``effect`` whether it was an effect of a tool,
    ``answered`` whether its reply left. ``more`` adds to ``text``, in softer ink.
    ``ends``: it ended its life.
    """

    seq: int
    life: int
    kind: str
    text: str
    more: str = ""
    lane: str = ""
    passed: bool = False
    effect: bool = False
    answered: bool = False
    marked: bool = False
    ends: bool = False


def happened(event: Event, *, is_marked: bool = False) -> Row | None:
    """An event that is no message as a row; None for what would say nothing.

    Log lines are many: they are told where a finding rests on them.
    """
    match event:
        case LifeStarted():
            name = f" ({event.process})" if event.process else ""
            return _row(event, "start", f"life {event.life}{name}", _why(event))
        case LifeEnded():
            text = f"life {event.life} {_how(event)}"
            return _row(event, "end", text, "; ".join(event.tail[-1:]))
        case LifeContinued():
            return _row(event, "other", f"life {event.life} goes on")
        case StatusSeen():
            return _row(event, "other", f"status: {event.status or event.said}")
        case Inspected():
            return _row(event, "other", "inspect", _inspected(event))
        case Leaked():
            return _row(event, "other", f"the canary key is in {event.where}")
        case ClockLeapt():
            return _row(event, "other", f"the clock leapt by {event.seconds:g} s")
        case Logged() if is_marked:
            entry = quoted(event.entry)[:LOG_SHOWN_MAX]
            return _row(event, "other", f"logs on {event.stream}", entry)
        case RunEnded():
            return _row(event, "over", f"the run is {event.outcome}", event.reason)
    return None


def _row(event: Event, kind: str, text: str, more: str = "") -> Row:
    return Row(event.seq, event.life, kind, text, more)


def _why(event: LifeStarted) -> str:
    if event.purpose == "again":
        return "started once more, after done"
    return f"{event.purpose} {event.answer or ''}".strip()


def _how(end: LifeEnded) -> str:
    if end.cause == "limit":
        return "did not end in time"
    if end.cause in ("fault", "restored"):
        return "is killed"
    if end.ending != "died":
        return f"ends: {end.ending}"
    how = f"signal {end.signal}" if end.code is None else f"exit code {end.code}"
    return f"dies: {how}"


def _inspected(event: Inspected) -> str:
    if event.problem:
        return event.problem
    turns = event.transcript
    count = f", {len(turns)} messages" if isinstance(turns, list) else ""
    return f"checkpoint {event.checkpoint_id}, {event.status}{count}"
