"""What the script says at a place, and how it is said to one who asks again.

The first answer is always the script's own. Of the others each has its turn, in the
script's order, round and round: which one comes hangs on how often the turn was told in
this run and on nothing else, so a schedule finds the same answers in every run.
"""

import math
from collections.abc import Sequence

from pydantic import JsonValue

from chaoskit.model.script import (
    AskTurn,
    Call,
    CallTurn,
    Llm,
    SayTurn,
    WaitTurn,
    Wobble,
)
from chaoskit.wire.json_text import compact, parse
from chaoskit.wire.said import Said

WORDINGS = ("{}", "{} That is all.", "In short: {}")
"""How a text is worded when it is told for the first, second, third time."""
BESIDE_CALLS = (None, "I will do that now.", "One moment.")
"""What is said beside calls, which the script itself leaves without words."""


def said_at(llm: Llm, turn: int, told: int = 0) -> Said:
    """What the model says at a place when it was told ``told`` times before.

    Past its end the script repeats its last word.
    """
    scripted = llm.script[min(turn, len(llm.script) - 1)]
    worded = told if llm.wobble is Wobble.WORDING else 0
    match scripted:
        case CallTurn():
            made = [(call.tool, compact(call.args)) for call in _calls(llm, turn, told)]
            beside = BESIDE_CALLS[worded % len(BESIDE_CALLS)]
            return Said(turn, beside, tuple(made))
        case AskTurn():
            question = {"question": _worded(scripted.ask, worded)}
            return Said(turn, None, (("ask_human", compact(question)),))
        case WaitTurn():
            return Said(turn, None, (("wait", compact(_seconds(scripted.wait))),))
        case SayTurn():
            return Said(turn, _worded(scripted.say, worded))


def ways(llm: Llm, turn: int) -> int:
    """In how many ways a turn can be told."""
    scripted = llm.script[min(turn, len(llm.script) - 1)]
    if isinstance(scripted, WaitTurn):
        return 1
    if llm.wobble is Wobble.WORDING:
        return len(WORDINGS)
    if not isinstance(scripted, CallTurn):
        return 1
    if llm.wobble is Wobble.ARGUMENTS:
        return math.lcm(*(len(call.variants) for call in scripted.call))
    return len(scripted.steps) if llm.wobble is Wobble.CHOICE else 1


def calls_at(llm: Llm, turn: int, position: int) -> tuple[tuple[str, JsonValue], ...]:
    """The call at a place, in each way in which the model may make it."""
    told = (said_at(llm, turn, told).called for told in range(ways(llm, turn)))
    made = (called[position] for called in told if position < len(called))
    return tuple((tool, parse(text.encode())) for tool, text in dict.fromkeys(made))


def _worded(text: str, told: int) -> str:
    return WORDINGS[told % len(WORDINGS)].format(text)


def _seconds(seconds: float) -> dict[str, float]:
    return {"seconds": int(seconds) if seconds.is_integer() else seconds}


def _calls(llm: Llm, turn: int, told: int) -> Sequence[Call]:
    scripted = llm.script[turn]
    assert isinstance(scripted, CallTurn)
    if llm.wobble is Wobble.CHOICE:
        return scripted.steps[told % len(scripted.steps)]
    if llm.wobble is not Wobble.ARGUMENTS:
        return scripted.call
    return [_varied(call, told) for call in scripted.call]


def _varied(call: Call, told: int) -> Call:
    variants = call.variants
    return variants[told % len(variants)]
