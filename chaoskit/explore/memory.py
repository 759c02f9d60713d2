"""What judging remembers of a history, as part of a world's fingerprint.

Two worlds with equal stores may still be judged differently later on: a key that was
sent before must be sent again, a call whose result went to the model must not be
delivered again. So the facts on which checks rest across a crash belong to the state.
They are sets, not counts, wherever repeating changes nothing: otherwise no search over
states would ever end.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from chaoskit.model.calls import identity
from chaoskit.model.history import (
    Applied,
    Asked,
    Delivered,
    Event,
    Inspected,
    LifeEnded,
    LifeStarted,
    Logged,
)
from chaoskit.model.manifest import LogNames


def remembered(
    history: Iterable[Event], names: LogNames, stored: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """The facts of a history that later judgement can depend on.

    Of checkpoints it is whether the newest that the log named, or that was read back,
    is ``stored``: if it is not, the next life may have to name an older one. The number
    itself would make every life of an agent that saves when it resumes a new state.
    """
    applied: Counter[str] = Counter()
    sent: set[str] = set()
    asked: set[str] = set()
    carried: set[str] = set()
    parked: set[str] = set()
    answers: set[str] = set()
    logged, turn = 0, 0
    for event in history:
        if isinstance(event, Applied):
            applied[_call(event)] += event.first
        elif isinstance(event, Delivered):
            sent.add(f"{_call(event)} key={event.idempotency_key}")
        elif isinstance(event, Asked):
            turn = event.turn
            asked.add(f"{turn} {event.problem or ''}")
            carried |= set(event.carried)
        elif isinstance(event, Logged):
            named = event.entry.get(names.checkpoint_id)
            logged = max(logged, named) if isinstance(named, int) else logged
        elif isinstance(event, Inspected):
            logged = max(logged, event.checkpoint_id or 0)
        elif isinstance(event, LifeEnded) and event.ending == "parked":
            parked.add(f"{turn}")
        elif isinstance(event, LifeStarted) and event.answer is not None:
            answers.add(event.answer)
    return {
        "applied": [f"{call} x{count}" for call, count in sorted(applied.items())],
        "sent": list[JsonValue](sorted(sent)),
        "asked": list[JsonValue](sorted(asked)),
        "carried": list[JsonValue](sorted(carried)),
        "parked": list[JsonValue](sorted(parked)),
        "answers": list[JsonValue](sorted(answers)),
        "logged": "stored" if logged == 0 or _mentions(stored, logged) else "lost",
    }


def _mentions(stored: Mapping[str, JsonValue], number: int) -> bool:
    # Its digits first: a search for them is many times faster in a large store.
    pattern = rf"{number}(?<![\w.]{number})(?![\w.])"
    return re.search(pattern, json.dumps(stored)) is not None


def _call(event: Applied | Delivered) -> str:
    return " ".join(identity(event))
