"""What stands in the way of a level or a tag: pure, and nothing is softened.

There are three kinds of it: a requirement that was broken, a campaign that proved
nothing, and one that was not run. Each stands at one level, the lowest that it keeps
from being reached, and says so whatever else was found: what is not there is never
counted as passed, and nothing hides behind what stopped a lower level.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from chaoskit.certify.evidence import Breach, Evidence
from chaoskit.certify.revision import Campaign, Level, Revision, Tag
from chaoskit.model.verdict import Severity

NOT_RUN = "it was not run"
NOT_BEGUN = "none of its campaigns was run"


@dataclass(frozen=True)
class Stop:
    """What keeps a level, or a tag, from being reached.

    ``requirement`` is empty where nothing was broken, and nothing proved either;
    ``campaign`` is empty where a whole level was not begun.
    """

    level: str
    scenario: str
    campaign: str
    why: str
    requirement: str = ""
    schedule: str = ""
    replay: str = ""
    subject: str = ""


def of_levels(revision: Revision, evidence: Evidence) -> tuple[Stop, ...]:
    """All that stands in the way of any level, the lowest level first."""
    found = [*_of_the_base(revision, evidence)]
    for level in revision.levels:
        found += _unproven(evidence, level)
    own = set(revision.order)
    found += (
        each
        for each in broken(revision, evidence)
        if each.level in own and _is_must(revision, each)
    )
    return tuple(sorted(found, key=lambda stop: revision.order.index(stop.level)))


def of_tag(revision: Revision, evidence: Evidence, tag: Tag) -> Iterator[Stop]:
    """All that stands in the way of a tag.

    Its own campaigns hold every requirement, whatever the level; and what the tag
    stands for has to hold in all campaigns that were run.
    """
    for campaign in tag.campaigns:
        yield from _doubtful(evidence, campaign, tag.title)
    for each in broken(revision, evidence):
        is_its_own = each.level == tag.title or tag.demands_it(each.requirement)
        if is_its_own and _is_must(revision, each):
            yield replace(each, level=tag.title)


def warnings(revision: Revision, evidence: Evidence) -> Iterator[Stop]:
    """The broken requirements that only warn, and stand in no way."""
    found = broken(revision, evidence)
    return (each for each in found if not _is_must(revision, each))


def broken(revision: Revision, evidence: Evidence) -> Iterator[Stop]:
    """Each broken requirement at the level of its campaign, or at its own, if higher.

    Those that a campaign of a tag found stand at that tag.
    """
    for level in revision.levels:
        for stop in _found(evidence, level.campaigns):
            at = revision.demanded_at(stop.requirement, level.id)
            yield replace(stop, level=at)
    for tag in revision.tags:
        for stop in _found(evidence, tag.campaigns):
            yield replace(stop, level=tag.title)


def _is_must(revision: Revision, stop: Stop) -> bool:
    return revision.severity(stop.requirement) is Severity.MUST


def _of_the_base(revision: Revision, evidence: Evidence) -> Iterator[Stop]:
    first, base = revision.order[0], evidence.base
    for why in base.unseen:
        yield Stop(first, "", "clean", why)
    for why in base.selftest:
        yield Stop(first, "", "selftest", why)


def _unproven(evidence: Evidence, level: Level) -> Iterator[Stop]:
    ran = {outcome.campaign for outcome in evidence.outcomes}
    if level.campaigns and not any(each.id in ran for each in level.campaigns):
        yield Stop(level.id, "", "", NOT_BEGUN)
        return
    for campaign in level.campaigns:
        yield from _doubtful(evidence, campaign, level.id)


def _doubtful(evidence: Evidence, campaign: Campaign, level: str) -> Iterator[Stop]:
    for scenario in evidence.scenarios:
        outcome = evidence.of(scenario, campaign.id)
        for why in (NOT_RUN,) if outcome is None else outcome.doubts:
            yield Stop(level, scenario, campaign.id, why)


def _found(evidence: Evidence, campaigns: Iterable[Campaign]) -> Iterator[Stop]:
    for campaign in campaigns:
        for scenario in evidence.scenarios:
            outcome = evidence.of(scenario, campaign.id)
            for breach in outcome.breaches if outcome else ():
                yield _told(breach, Stop("", scenario, campaign.id, breach.message))


def _told(breach: Breach, stop: Stop) -> Stop:
    return replace(
        stop,
        requirement=breach.requirement,
        schedule=breach.schedule,
        replay=breach.replay,
        subject=breach.subject,
    )
