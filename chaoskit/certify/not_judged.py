"""Which requirements nothing could be held against, and why; each is told plainly.

They hold up no level: an agent need not write logs, nor have an `inspect`. But nobody
may take what was never looked at for what was found right.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from chaoskit.certify.results import Ran
from chaoskit.certify.revision import Revision
from chaoskit.model.manifest import Manifest

BY_INSPECT = (
    "store",
    "transcript/stored-pairs",
    "fence/no-checkpoint",
    "fence/no-status",
)
"""Requirements, or promises, judged by what the agent's `inspect` prints alone."""
NO_INSPECT = "the manifest names no `inspect`, which shows what is stored"
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
    revision: Revision, manifest: Manifest, ran: Sequence[Ran]
) -> Iterator[NotJudged]:
    """All of them, by reason."""
    if manifest.inspect is None:
        yield NotJudged(_named(revision, BY_INSPECT), NO_INSPECT)
    found: dict[tuple[str, str], list[str]] = {}
    for each in ran:
        for note in each.report.notes:
            for told in _told(note):
                found.setdefault(told, []).append(f"{each.scenario}/{each.campaign.id}")
    for (promise, why), places in found.items():
        where = () if len(places) == len(ran) else tuple(places)
        yield NotJudged(_named(revision, (promise,)), why, where)


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
