"""Which level, and which tags, follow from what the campaigns showed: pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from chaoskit.certify.evidence import Evidence
from chaoskit.certify.revision import Revision, Tag
from chaoskit.certify.stops import Stop, of_levels, of_tag, warnings


@dataclass(frozen=True)
class Standing:
    """The highest level that holds, the tags beside it, and all that was found.

    ``stops`` stand in the way of levels up to the one that was asked for, ``tag_stops``
    in that of tags; ``beyond`` were broken and are demanded above that level only, and
    ``warnings`` at none.
    """

    level: str | None
    tags: tuple[str, ...] = ()
    stops: tuple[Stop, ...] = ()
    tag_stops: tuple[Stop, ...] = ()
    warnings: tuple[Stop, ...] = ()
    beyond: tuple[Stop, ...] = ()


def standing(
    revision: Revision, evidence: Evidence, asked: str, tags: Sequence[Tag] = ()
) -> Standing:
    """The certificate's level, no higher than the one asked for, and its tags."""
    every = of_levels(revision, evidence)
    wanted = {level.id for level in revision.up_to(asked)}
    stops = tuple(stop for stop in every if stop.level in wanted)
    held = _held(revision, asked, stops)
    # What is missing at the base is no level, and beside none there is no tag.
    earned = held is not None and held != revision.order[0]
    by_tag = {tag.id: tuple(of_tag(revision, evidence, tag)) for tag in tags if earned}
    return Standing(
        held,
        tuple(tag for tag, found in by_tag.items() if not found),
        stops,
        tuple(stop for found in by_tag.values() for stop in found),
        tuple(warnings(revision, evidence)),
        tuple(stop for stop in every if stop not in stops and stop.requirement),
    )


def stops_of(revision: Revision, evidence: Evidence, level: str) -> tuple[Stop, ...]:
    """All that keeps a level from being reached, what is below it included."""
    return standing(revision, evidence, level).stops


def _held(revision: Revision, asked: str, stops: Sequence[Stop]) -> str | None:
    stopped = {stop.level for stop in stops}
    held = None
    for level in revision.up_to(asked):
        if level.id in stopped:
            break
        held = level.id
    return held
