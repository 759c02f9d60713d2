"""Which requirements nothing could be held against, and why; each is told plainly.

They hold up no level: an agent need not write logs, nor have an `inspect`. But nobody
may take what was never looked at for what was found right.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from chaoskit.certify.results import Ran
from chaoskit.certify.revision import Revision
from chaoskit.model.scenario import Scenario, ToolClass

BY_INSPECT = (
    "store",
    "transcript/stored-pairs",
    "fence/no-checkpoint",
    "fence/no-status",
)
"""What goes unjudged with `store`: all that the agent's `inspect` alone can show."""
DISTINCT_KEY = "effects/distinct-key"
UNTESTED = "those pauses put no takeover to the test"
"""How a campaign's note ends that says so."""
_NOTE = re.compile(r"(?P<promise>\w+) was not judged: (?P<why>.*)", re.DOTALL)


@dataclass(frozen=True)
class NotJudged:
    """Requirements that were not judged; ``where`` are the campaigns, if not all."""

    requirements: tuple[str, ...]
    why: str
    where: tuple[str, ...] = ()


def not_judged(
    revision: Revision, ran: Sequence[Ran], scenarios: Sequence[Scenario]
) -> Iterator[NotJudged]:
    """All of them, by reason, as the campaigns' reports note them."""
    if not any(map(_calls_twice, scenarios)):
        names = _named(revision, (DISTINCT_KEY,))
        yield NotJudged(names, "no scenario calls a keyed tool twice")
    found: dict[tuple[str, str], list[str]] = {}
    for each in ran:
        for note in each.report.notes:
            for told in _told(note):
                found.setdefault(told, []).append(f"{each.scenario}/{each.campaign.id}")
    for (promise, why), places in found.items():
        where = () if len(places) == len(ran) else tuple(places)
        names = BY_INSPECT if promise == BY_INSPECT[0] else (promise,)
        yield NotJudged(_named(revision, names), why, where)


def _calls_twice(scenario: Scenario) -> bool:
    """Whether two calls could go out under one key."""
    keyed = [
        call.tool
        for call in scenario.calls()
        if scenario.tools[call.tool].cls is ToolClass.KEYED
    ]
    return len(keyed) > len(set(keyed))


def _told(note: str) -> Iterator[tuple[str, str]]:
    if found := _NOTE.fullmatch(note):
        yield found["promise"], found["why"]
    elif note.endswith(UNTESTED):
        yield "fence", note


def _named(revision: Revision, names: Iterable[str]) -> tuple[str, ...]:
    """The requirements, each by its own name."""
    wanted = set(names)
    return tuple(
        each
        for each in revision.requirements
        if wanted & {each, each.partition("/")[0]}
    )
