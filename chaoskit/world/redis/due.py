"""What the faults that are due ask of a Redis server, and which of it cannot be had."""

import re
from collections.abc import Iterable

from chaoskit.gate import FreshNames, Gate
from chaoskit.model.faults import FaultKind
from chaoskit.model.scenario import RedisDurability, Scenario
from chaoskit.model.schedule import Fault
from chaoskit.world.redis.server import VARIABLE, GivenServer, OwnServer
from chaoskit.world.servers import MissingServer

SERVICE = "redis"


def to_keep(
    gate: Gate, scenario: Scenario, server: GivenServer | OwnServer
) -> str | None:
    """How a server has to sync its append-only file, or None where it needs none.

    Raises:
        MissingServer: it is to be killed, and is not ours.
    """
    is_due = gate.expects(FaultKind.RESTART, SERVICE)
    if isinstance(server, GivenServer):
        if is_due or any(each.kind is FaultKind.RESTART for each in scenario.wanted):
            raise _not_ours(server)
        return None
    durability = scenario.durability.redis
    keeps = is_due and durability is not RedisDurability.NONE
    return durability.value if keeps else None


def to_remember(faults: Iterable[Fault]) -> int:
    """How many writes may have to be forgotten at once."""
    due = (
        writes(fault)
        for fault in faults
        if fault.kind is FaultKind.ROLLBACK and fault.at.operation.service == SERVICE
    )
    return max(due, default=0)


def writes(rollback: Fault) -> int:
    """How many writes it takes back."""
    return max(1, int(rollback.chosen or 1))


def meant(text: str, names: FreshNames) -> bytes:
    """The key that a text names in which what is fresh in each run is renamed."""
    words = {name: word for word, name in names.known.items()}
    words["{run}"] = names.run_id
    return re.sub(
        r"\{\w+\}", lambda found: words.get(found[0], found[0]), text
    ).encode()


def _not_ours(server: GivenServer) -> MissingServer:
    return MissingServer(
        f"the fault `restart` kills the Redis server, and the one at {server.shown} "
        f"({VARIABLE}) is not ours to kill. Leave {VARIABLE} unset: chaoskit then "
        "starts a server of its own; or take `restart` out of the scenario's `faults`"
    )
