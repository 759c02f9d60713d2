"""Names that the contract has and this version has not: said so, not called unknown."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from chaoskit.model.manifest import (
    Capability,
    Disk,
    Guarantee,
    Launch,
    Resumes,
    Store,
)
from chaoskit.model.scenario import (
    PostgresDurability,
    PromiseId,
    RedisDurability,
    Strategy,
    ToolClass,
    Via,
)
from chaoskit.model.script import Wobble


class Choice(NamedTuple):
    """What one kind of name is called, and which of them are still to come."""

    called: str
    later: tuple[str, ...] = ()


CHOICES: Mapping[type[StrEnum], Choice] = {
    ToolClass: Choice("a tool's class"),
    Via: Choice("a way to call a tool"),
    Guarantee: Choice("a guarantee"),
    Resumes: Choice("where a run goes on after a crash"),
    Capability: Choice("a capability"),
    Launch: Choice("a way to launch"),
    Disk: Choice("what becomes of a container's disk"),
    Store: Choice("a store"),
    Strategy: Choice("a strategy", ("fuzz",)),
    Wobble: Choice("a wobble"),
    PromiseId: Choice("a promise"),
    RedisDurability: Choice("what Redis keeps"),
    PostgresDurability: Choice("whether a commit waits for the disk"),
}


def not_yet(name: str) -> str:
    """The sentence for all of them."""
    return f"'{name}' is in the contract, but not yet in this version"
