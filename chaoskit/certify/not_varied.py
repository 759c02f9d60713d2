"""Which calls the model repeated as they were, where it was to call otherwise.

They hold up no level: a call without text or a number in its arguments has no others.
But nobody may take them for tried.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaoskit.certify.asked import Member
from chaoskit.certify.derive import unvaried
from chaoskit.certify.results import Ran
from chaoskit.model.script import Wobble

NO_OTHERS = (
    "repeated with the same arguments: none of them is text or a number that can be "
    "another, and the scenario names no others under `or`"
)


@dataclass(frozen=True)
class NotVaried:
    """Calls of a scenario that a campaign with other arguments left as they are."""

    scenario: str
    campaign: str
    calls: tuple[str, ...]
    why: str = NO_OTHERS


def not_varied(members: Sequence[Member], ran: Sequence[Ran]) -> Iterator[NotVaried]:
    """All of them, by campaign."""
    documents = {member.name: member.document for member in members}
    for each in ran:
        if each.campaign.wobble is Wobble.ARGUMENTS:
            calls = tuple(unvaried(documents[each.scenario]))
            if calls:
                yield NotVaried(each.scenario, each.campaign.id, calls)
