"""What the campaigns of a certifying run came to, as far as it has come."""

from dataclasses import dataclass, field

from chaoskit.certify.asked import Certified
from chaoskit.certify.evidence import Base, Evidence, Outcome
from chaoskit.certify.revision import Campaign
from chaoskit.model.report import Report
from chaoskit.model.verdict import Verdict


@dataclass(frozen=True)
class Ran:
    """One campaign that was run, and what it left.

    ``verdict`` is that of its report, without doubts that the campaign is there for.
    """

    scenario: str
    campaign: Campaign
    report: Report
    verdict: Verdict
    pairs: int = 0

    @property
    def is_closed(self) -> bool:
        """Of a closure: whether no further kill leads anywhere new, however many."""
        followed = self.campaign.depth if self.campaign.thorough else None
        is_cut = followed is not None and self.report.depth == followed
        return self.report.states is not None and not self.report.endless and not is_cut


@dataclass
class Results:
    """What is known so far; ``image`` is the digest of the agent's, if it has one."""

    outcomes: list[Outcome] = field(default_factory=list)
    ran: list[Ran] = field(default_factory=list)
    base: Base = field(default_factory=Base)
    image: str = ""

    def evidence(self, certified: Certified) -> Evidence:
        """As the evaluation takes it."""
        names = tuple(member.name for member in certified.members)
        return Evidence(names, tuple(self.outcomes), self.base)
