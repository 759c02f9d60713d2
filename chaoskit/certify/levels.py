"""Which level follows from what the campaigns showed: pure, and nothing is softened.

A level is held up by a `Stop`: a requirement that was broken, a campaign that proved
nothing, or one that was not run. What is not there is never counted as passed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from chaoskit.certify.revision import Campaign, Level, Revision, Tag
from chaoskit.model.verdict import Severity


@dataclass(frozen=True)
class Breach:
    """A requirement that a campaign found broken, by its smallest schedule."""

    requirement: str
    message: str
    schedule: str = ""
    replay: str = ""


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
class Stop:
    """What keeps a level from being reached; ``requirement`` is empty for a doubt."""

    level: str
    scenario: str
    campaign: str
    why: str
    requirement: str = ""
    schedule: str = ""
    replay: str = ""


@dataclass(frozen=True)
class Base:
    """What L0 asks beside its campaigns: why it does not hold, in words."""

    unseen: tuple[str, ...] = ()
    selftest: tuple[str, ...] = ()


@dataclass(frozen=True)
class Standing:
    """The highest level that holds, the tags beside it, and what stopped the next.

    ``warnings`` are the broken requirements that only warn.
    """

    level: str | None
    tags: tuple[str, ...] = ()
    stops: tuple[Stop, ...] = ()
    tag_stops: tuple[Stop, ...] = ()
    warnings: tuple[Stop, ...] = ()


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


def standing(
    revision: Revision, evidence: Evidence, asked: str, tags: Sequence[Tag] = ()
) -> Standing:
    """The certificate's level, no higher than the one asked for, and its tags."""
    held: str | None = None
    stops: tuple[Stop, ...] = ()
    for level in revision.up_to(asked):
        stops = tuple(stops_of(revision, evidence, level.id))
        if stops:
            break
        held = level.id
    by_tag = {tag.id: tuple(_tag_stops(revision, evidence, tag)) for tag in tags}
    # What is missing at the base is no level, and beside none there is no tag.
    earned = held is not None and held != revision.order[0]
    return Standing(
        held,
        tuple(tag for tag, found in by_tag.items() if earned and not found),
        stops,
        tuple(stop for found in by_tag.values() for stop in found),
        tuple(_warnings(revision, evidence)),
    )


def stops_of(revision: Revision, evidence: Evidence, level: str) -> Iterator[Stop]:
    """All that keeps a level from being reached, what is below it included."""
    yield from _base_stops(revision, evidence.base)
    for below in revision.up_to(level):
        for campaign in below.campaigns:
            yield from _campaign_stops(revision, evidence, campaign, below, level)


def _base_stops(revision: Revision, base: Base) -> Iterator[Stop]:
    first = revision.order[0]
    for why in base.unseen:
        yield Stop(first, "", "clean", why)
    for why in base.selftest:
        yield Stop(first, "", "selftest", why)


def _campaign_stops(
    revision: Revision,
    evidence: Evidence,
    campaign: Campaign,
    own: Level,
    level: str,
) -> Iterator[Stop]:
    for scenario in evidence.scenarios:
        stop = Stop(own.id, scenario, campaign.id, "it was not run")
        outcome = evidence.of(scenario, campaign.id)
        if outcome is None:
            yield stop
            continue
        for doubt in outcome.doubts:
            yield replace(stop, why=doubt)
        for breach in _broken(revision, outcome, level):
            yield _told(breach, replace(stop, level=level))


def _broken(revision: Revision, outcome: Outcome, level: str) -> Iterator[Breach]:
    for breach in outcome.breaches:
        must = revision.severity(breach.requirement) is Severity.MUST
        if must and revision.demanded(breach.requirement, level):
            yield breach


def _told(breach: Breach, stop: Stop) -> Stop:
    return replace(
        stop,
        why=breach.message,
        requirement=breach.requirement,
        schedule=breach.schedule,
        replay=breach.replay,
    )


def _tag_stops(revision: Revision, evidence: Evidence, tag: Tag) -> Iterator[Stop]:
    """Its own campaigns hold every requirement, whatever the level."""
    own = Level(id=f"tag {tag.id}", name=tag.id, holds=tag.id, campaigns=tag.campaigns)
    for campaign in tag.campaigns:
        for stop in _campaign_stops(
            revision, evidence, campaign, own, revision.order[-1]
        ):
            yield replace(stop, level=own.id)


def _warnings(revision: Revision, evidence: Evidence) -> Iterator[Stop]:
    for outcome in evidence.outcomes:
        for breach in outcome.breaches:
            if revision.severity(breach.requirement) is Severity.SHOULD:
                stop = Stop("", outcome.scenario, outcome.campaign, "")
                yield _told(breach, stop)
