"""A scenario as a campaign of a level runs it: a file of its own, which replays.

What is derived is written out in full, so that a finding is shown again by
`chaoskit replay` with that file, and what was certified can be read.
"""

from collections import Counter
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


def _varied(script: list[Document]) -> Iterator[Document]:
    """The script with other arguments for each call, unless its author named some."""
    if any(OTHERS in call for turn in script for call in _calls_of(turn)):
        yield from script
        return
    taken = Counter(_text(call) for turn in script for call in _calls_of(turn))
    for turn in script:
        if "call" not in turn:
            yield turn
            continue
        calls = turn["call"]
        several = isinstance(calls, list)
        changed = [
            _with_others(each, taken) for each in (calls if several else [calls])
        ]
        yield {**turn, "call": changed if several else changed[0]}


def _calls_of(turn: Document) -> list[Document]:
    calls = turn.get("call", [])
    return calls if isinstance(calls, list) else [calls]


def _with_others(call: Document, taken: Counter[str]) -> Document:
    """The call, and a variant of it that no other call of the script is."""
    ((tool, args),) = call.items()
    variant = _other(args)
    if variant is None or _text({tool: variant}) in taken:
        return call
    taken[_text({tool: variant})] += 1
    return {tool: args, OTHERS: [variant]}


def _other(args: Document) -> Document | None:
    """Arguments that differ in one value, the last that can: the first names the call.

    A single argument may be changed too; None where none is text or a number.
    """
    for name in reversed(list(args)):
        value = args[name]
        if isinstance(value, str):
            return {**args, name: f"{value} (again)"}
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {**args, name: value + 1}
    return None


def _text(call: Document) -> str:
    return repr(sorted(call.items(), key=lambda item: item[0]))
