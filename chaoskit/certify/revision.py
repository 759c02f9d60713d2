"""A revision of the requirements: levels, tags and requirements as frozen data."""

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from ruamel.yaml import YAML

from chaoskit.model.faults import FaultKind
from chaoskit.model.fields import Frozen, Text, Whole, flaw
from chaoskit.model.manifest import Capability, Store
from chaoskit.model.scenario import FaultText, PromiseId, Strategy
from chaoskit.model.script import Wobble
from chaoskit.model.verdict import Severity

CURRENT = "2026.1"
"""The revision that certificates of this version are about."""
TRIALS_MAX = 1_000_000
"""A campaign without a limit of its own."""

Schedules = Literal["clean", "inside-replies", "chased"]


class Campaign(Frozen):
    """One campaign that a level, or a tag, runs on every scenario of the set."""

    id: Text
    """Its name, once in a revision."""
    about: Text
    """What is tried, in a sentence."""
    strategy: Strategy
    """How schedules are chosen."""
    depth: Annotated[Whole, Field(ge=1, le=10)] = 1
    """How many faults one schedule may have; of a thorough closure, how many kills."""
    faults: tuple[FaultText, ...]
    """What is tried; with `replay` only told."""
    wobble: Wobble = Wobble.NONE
    """How a repeated question is answered."""
    schedules: Schedules | None = None
    """What `replay` runs: fault-free runs, a kill after each piece of each streamed
    reply, or each schedule of the campaign `chased` and a kill at the next crossing."""
    chased: Text | None = None
    """See `schedules`."""
    stores: tuple[Store, ...] = tuple(Store)
    """The stores for which it makes sense."""
    needs: Literal["choices", "restorable"] | None = None
    """What it needs to be run at all: steps under `or`, or an agent whose worlds can be
    restored."""
    trials: Annotated[Whole, Field(ge=1, le=TRIALS_MAX)] = TRIALS_MAX
    """The most that it runs."""
    or_depth: bool = False
    """Whether it may end at its limit of trials, and only says how deep it came."""
    thorough: bool = False
    """Of a closure: no recovery is cut short, and it is followed for `depth` kills."""
    within: Text | None = None
    """The thorough closure among whose chains of kills all of its schedules are: where
    that one was run to its end and found nothing, it need not be run."""

    @property
    def has_targets(self) -> bool:
        """Whether it has to strike at every crossing of the fault-free run."""
        return self.strategy is Strategy.SWEEP


class Level(Frozen):
    """One level; it includes those before it."""

    id: Text
    name: Text
    holds: Text
    """When it holds, in a sentence."""
    campaigns: tuple[Campaign, ...]


class Tag(Frozen):
    """What a certificate may say beside its level."""

    id: Text
    capability: Capability | None = None
    """Tried where the manifest declares it."""
    stores: tuple[Store, ...] = ()
    """Tried with these stores, where no capability is named."""
    demands: tuple[Text, ...] = ()
    """Requirements, or whole promises, that no campaign of any level may break."""
    campaigns: tuple[Campaign, ...] = ()

    @property
    def title(self) -> str:
        """What stands where a level would."""
        return f"tag {self.id}"

    def demands_it(self, requirement: str) -> bool:
        """Whether the tag says that a requirement holds, wherever it was tried."""
        return any(_is_of(requirement, demand) for demand in self.demands)


class Requirement(Frozen):
    """What an agent must do, or should."""

    promise: PromiseId
    severity: Severity
    level: Text
    """The level at which it is first demanded."""


class Revision(Frozen):
    """A whole requirement set."""

    revision: Text
    contract: Whole
    """The version of the contract that it is about."""
    levels: Annotated[tuple[Level, ...], Field(min_length=1)]
    tags: tuple[Tag, ...] = ()
    requirements: dict[Text, Requirement]

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        ids = [campaign.id for campaign in self.campaigns()]
        if len(ids) != len(set(ids)):
            raise flaw("each campaign's id once")
        by_id = {campaign.id: campaign for campaign in self.campaigns()}
        for campaign in by_id.values():
            if campaign.chased is not None and campaign.chased not in by_id:
                raise flaw("a campaign to chase", campaign.chased)
            wider = campaign.within and by_id.get(campaign.within)
            if campaign.within and not (wider and _holds(wider, campaign)):
                raise flaw("a thorough closure that holds it", campaign.within)
        for name, requirement in self.requirements.items():
            if requirement.level not in self.order:
                raise flaw(f"a level for {name}", requirement.level)
        for tag in self.tags:
            for demand in tag.demands:
                if not any(_is_of(name, demand) for name in self.requirements):
                    raise flaw("a requirement or a promise", demand)
        return self

    @property
    def order(self) -> tuple[str, ...]:
        """The ids of the levels, the lowest first."""
        return tuple(level.id for level in self.levels)

    def up_to(self, level: str) -> tuple[Level, ...]:
        """That level and all below it."""
        return self.levels[: self.order.index(level) + 1]

    def campaigns(self) -> Iterator[Campaign]:
        """Those of all levels, then those of all tags."""
        for level in self.levels:
            yield from level.campaigns
        for tag in self.tags:
            yield from tag.campaigns

    def demanded_at(self, requirement: str, level: str) -> str:
        """The first level, from this one on, at which a requirement is demanded."""
        known = self.requirements.get(requirement)
        own = level if known is None else known.level
        return max(own, level, key=self.order.index)

    def severity(self, requirement: str) -> Severity:
        """How much breaking it weighs; an unknown one is a MUST."""
        known = self.requirements.get(requirement)
        return known.severity if known else Severity.MUST


def _is_of(requirement: str, demand: str) -> bool:
    return demand in (requirement, requirement.partition("/")[0])


def _holds(wider: Campaign, campaign: Campaign) -> bool:
    """Whether every schedule of a campaign is one of a closure's chains of kills."""
    kills = (FaultKind.KILL.value,)
    return (
        wider.strategy is Strategy.CLOSURE
        and wider.thorough
        and campaign.strategy is Strategy.SWEEP
        and wider.faults == campaign.faults == kills
        and wider.wobble is campaign.wobble is Wobble.NONE
        and wider.depth >= campaign.depth
    )


@cache
def load(name: str = CURRENT) -> Revision:
    """The revision of that name, which comes with chaoskit."""
    text = _file(name).decode("utf-8")
    return Revision.model_validate(YAML(typ="safe", pure=True).load(text))


def digest(name: str = CURRENT) -> str:
    """The SHA-256 of a revision's file: a released one keeps its own for ever."""
    return hashlib.sha256(_file(name)).hexdigest()


def _file(name: str) -> bytes:
    folder = resources.files("chaoskit.certify") / "requirements"
    return (folder / f"{name}.yaml").read_bytes()
