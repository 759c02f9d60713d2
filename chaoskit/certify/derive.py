"""A scenario as a campaign of a level runs it: a file of its own, which replays.

What is derived is written out in full, so that a finding is shown again by
`chaoskit replay` with that file, and what was certified can be read.
"""

import json
from collections.abc import Iterator
from typing import Any

from chaoskit.certify.revision import Campaign
from chaoskit.model.scenario import Strategy
from chaoskit.model.script import Wobble

OTHERS = "or"

Document = dict[str, Any]


def derived(
    document: Document,
    campaign: Campaign,
    agent: str,
    trials: int,
    durability: dict[str, str],
) -> Document:
    """The scenario for a campaign.

    Args:
        document: the scenario as its file has it, shorthand and all.
        campaign: what is tried on it.
        agent: the path of the manifest, from where the new file will lie.
        trials: the most that the campaign may run.
        durability: the settings of the stores that take the place of the file's.
    """
    search: Document = {"strategy": campaign.strategy.value, "depth": campaign.depth}
    if campaign.strategy is Strategy.REPLAY:
        # What is replayed is told by the certifier; the file alone sweeps.
        search = {"strategy": Strategy.SWEEP.value}
    seed = document.get("search", {}).get("seed", 0)
    changes: Document = {
        "agent": agent,
        "search": {**search, "seed": seed, "trials": trials},
        "faults": list(campaign.faults) or ["kill"],
        # Every reply has new ids, as a real model's has, whatever makes a test simpler.
        "llm": {
            **document["llm"],
            "fresh_ids": True,
            "wobble": campaign.wobble.value,
        },
        "durability": {**document.get("durability", {}), **durability},
    }
    # Every promise is judged: which of them a level demands is for the level to say.
    # That a field means nothing is the author's word, and here it is not taken.
    whole = {**document, **changes}
    for softened in ("promises", "volatile"):
        whole.pop(softened, None)
    if campaign.wobble is Wobble.ARGUMENTS:
        whole["llm"]["script"] = list(_varied(whole["llm"]["script"]))
    return whole


def can_vary(document: Document) -> bool:
    """Whether the model could call with other arguments at all."""
    script = document["llm"]["script"]
    return any(OTHERS in call for turn in _varied(script) for call in _calls_of(turn))


def unvaried(document: Document) -> Iterator[str]:
    """The calls that have the same arguments whenever they are made: `2.0 (pay)`.

    They are named as findings name them, by turn and place in it, from 0.
    """
    for number, turn in enumerate(_varied(document["llm"]["script"])):
        for position, call in enumerate(_calls_of(turn)):
            if OTHERS not in call:
                yield f"{number}.{position} ({next(iter(call))})"


def _varied(script: list[Document]) -> Iterator[Document]:
    """The script with other arguments for each call for which its author named none."""
    steps = [step for turn in script for step in _steps_of(turn)]
    taken = {each for step in steps for call in step for each in _forms(call)}
    for turn in script:
        if "call" not in turn:
            yield turn
            continue
        changed = [_with_others(each, taken) for each in _calls_of(turn)]
        several = isinstance(turn["call"], list)
        yield {**turn, "call": changed if several else changed[0]}


def _steps_of(turn: Document) -> Iterator[list[Document]]:
    """The step of a turn, and those that may be taken in its place."""
    yield _calls_of(turn)
    for step in turn.get(OTHERS, []):
        yield step if isinstance(step, list) else [step]


def _calls_of(turn: Document) -> list[Document]:
    calls = turn.get("call", [])
    return calls if isinstance(calls, list) else [calls]


def _forms(call: Document) -> Iterator[str]:
    """The call with each of its arguments."""
    tool, args = _named(call)
    for each in (args, *call.get(OTHERS, [])):
        yield _text(tool, each)


def _with_others(call: Document, taken: set[str]) -> Document:
    """The call, and a variant of it that no other call of the script is."""
    if OTHERS in call:
        return call
    tool, args = _named(call)
    for variant in _others(args):
        if (text := _text(tool, variant)) not in taken:
            taken.add(text)
            return {tool: args, OTHERS: [variant]}
    return call


def _others(args: Document) -> Iterator[Document]:
    """Arguments that differ in one value, the last that can: the first names the call.

    A single argument may be changed too; none where none is text or a number.
    """
    for name in reversed(list(args)):
        value = args[name]
        if isinstance(value, str):
            yield {**args, name: f"{value} (again)"}
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield {**args, name: value + 1}


def _named(call: Document) -> tuple[str, Document]:
    ((tool, args),) = ((key, value) for key, value in call.items() if key != OTHERS)
    return tool, args


def _text(tool: str, args: Document) -> str:
    return json.dumps([tool, args], sort_keys=True)
