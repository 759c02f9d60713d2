"""Names that the contract has and this version has not: said so, not called unknown."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from pydantic import BaseModel

from chaoskit.model.faults import FaultKind
from chaoskit.model.manifest import Capability, Guarantee, Launch, Manifest, Store
from chaoskit.model.scenario import PromiseId, Strategy, ToolClass
from chaoskit.model.script import Wobble


class Choice(NamedTuple):
    """What one kind of name is called, and which of them are still to come."""

    called: str
    later: tuple[str, ...] = ()


CHOICES: Mapping[type[StrEnum], Choice] = {
    ToolClass: Choice("a tool's class"),
    Guarantee: Choice("a guarantee"),
    Capability: Choice("a capability"),
    Launch: Choice("a way to launch", ("docker",)),
    Store: Choice("a store", ("sqlite", "postgres", "files")),
    Strategy: Choice("a strategy", ("treadmill", "fuzz")),
    Wobble: Choice("a wobble", ("wording", "arguments", "choice")),
    PromiseId: Choice(
        "a promise",
        ("answer", "cost", "store", "fence", "human", "loud", "secrets"),
    ),
    FaultKind: Choice(
        "a fault",
        (
            *("kill_one", "term", "int", "pause", "drop_reply", "refuse", "error"),
            *("delay", "tear", "duplicate", "restart", "rollback", "expire", "full"),
            *("powerloss", "skew"),
        ),
    ),
}

KEYS: Mapping[type[BaseModel], tuple[str, ...]] = {
    Manifest: ("submit", "status", "processes", "docker")
}
"""Keys of a mapping that are still to come: long-lived agents, containers."""


def not_yet(name: str) -> str:
    """The sentence for all of them."""
    return f"'{name}' is in the contract, but not yet in this version"
