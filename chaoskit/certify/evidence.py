"""What the campaigns of a certifying run showed, as its evaluation takes it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Breach:
    """A requirement that a campaign found broken, by its smallest schedule.

    ``subject`` is the call, wait or line that it is about, where there are several.
    """

    requirement: str
    message: str
    schedule: str = ""
    replay: str = ""
    subject: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one campaign on one scenario showed.

    ``doubts`` are reasons for which it proves nothing, in words; ``not_for`` says why
    it makes no sense for this agent or scenario, and ``within`` which campaign has
    tried all that it would, so that neither holds anything up.
    """

    scenario: str
    campaign: str
    breaches: tuple[Breach, ...] = ()
    doubts: tuple[str, ...] = ()
    not_for: str = ""
    within: str = ""


@dataclass(frozen=True)
class Base:
    """What L0 asks beside its campaigns: why it does not hold, in words."""

    unseen: tuple[str, ...] = ()
    selftest: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """All that was shown, of all scenarios of the set."""

    scenarios: tuple[str, ...]
    outcomes: tuple[Outcome, ...] = ()
    base: Base = Base()

    def of(self, scenario: str, campaign: str) -> Outcome | None:
        """What a campaign showed, if it was run."""
        key = scenario, campaign
        found = (o for o in self.outcomes if (o.scenario, o.campaign) == key)
        return next(found, None)
