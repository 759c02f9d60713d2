"""The book: one ledger for a trial, and the one way in which a call gets into it.

`tools`, `mcp` and `smtp` share a book, so that a call has the same effect, is seen the
same by the checks, and repeats the same answer to a key, whichever way it came. Each of
them begins the trial with `begin`; the first one opens a new ledger. `tools` alone
takes its snapshots.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count

from pydantic import JsonValue

from chaoskit.gate import Crossing, Gate
from chaoskit.model.address import Operation
from chaoskit.model.history import Applied, Delivered
from chaoskit.model.scenario import Scenario
from chaoskit.world.ledger import Ledger, shortened
from chaoskit.world.llm.key import holds_canary


@dataclass(frozen=True)
class Call:
    """A call that has come whole; ``raw`` is the mail that it came as."""

    tool: str
    args: dict[str, JsonValue]
    idempotency_key: str | None = None
    raw: bytes | None = None


@dataclass(frozen=True)
class Answered:
    """What is to be answered, and the crossing that it belongs to."""

    crossing: Crossing
    result: JsonValue


class Book:
    """See the module's docstring. One per worker process."""

    def __init__(self) -> None:
        self._trial: _Trial | None = None

    def begin(self, gate: Gate, scenario: Scenario) -> None:
        """A new ledger for the trial of this gate, unless it has one already."""
        if self._trial is None or self._trial.gate is not gate:
            self._trial = _Trial(gate, Ledger(scenario))

    @property
    def gate(self) -> Gate:
        """The gate of this trial."""
        return self._open.gate

    @property
    def ledger(self) -> Ledger:
        """The ledger of this trial."""
        return self._open.ledger

    @property
    def _open(self) -> "_Trial":
        assert self._trial is not None, "begin comes first"
        return self._trial

    def hear(self, life: int, tool: str, parts: Iterable[str | bytes]) -> None:
        """Take in all of a message to a tool: the canary may stand in any part of it.

        What it asks for is told by the others; what else it holds is seen here alone.
        """
        if holds_canary(parts):
            self.gate.record.leaked(life, f"a call of {tool}")

    def refuse(
        self, life: int, service: str, tool: str, args: dict[str, JsonValue]
    ) -> None:
        """A call of a tool that is not there: it crosses nothing, and shows.

        Raises:
            Dropped: its life is already over.
        """
        name = shortened(tool)
        crossing = self.gate.arrive(life, Operation(service, name))
        self.gate.record(_delivered(Call(name, args), crossing))

    async def call(
        self, life: int, operation: Operation, call: Call, pieces: int | None = None
    ) -> Answered:
        """Take a call through the gate and into the ledger.

        Raises:
            Dropped: nothing is to be answered.
            Failed: an error is to be answered.
        """
        gate, ledger = self.gate, self.ledger
        crossing = gate.arrive(life, operation)
        gate.record(_delivered(call, crossing))
        copies = count()

        async def apply() -> JsonValue:
            copy = next(copies) > 0
            if copy:
                gate.record(_delivered(call, crossing, duplicate=True))
            return _apply(gate, ledger, call, crossing, duplicate=copy)

        result = await gate.cross(crossing, apply, pieces=pieces)
        return Answered(crossing, result)

    async def look_up(
        self, life: int, service: str, tool: str, wanted: Iterable[tuple[str, str]]
    ) -> Answered:
        """The effects of a tool whose arguments have these texts, listed.

        Raises:
            Dropped: nothing is to be answered.
            Failed: an error is to be answered.
        """
        gate, ledger, pairs = self.gate, self.ledger, tuple(wanted)

        async def find() -> JsonValue:
            return [effect.listed() for effect in ledger.look_up(tool, pairs)]

        key = ledger.key(tool, dict(pairs))
        crossing = gate.arrive(life, Operation(service, f"{tool}?", key))
        return Answered(crossing, await gate.cross(crossing, find))

    def operation(
        self, service: str, tool: str, args: Mapping[str, JsonValue]
    ) -> Operation:
        """The operation that a call of a tool is."""
        return Operation(service, tool, self.ledger.key(tool, args))


@dataclass(frozen=True)
class _Trial:
    gate: Gate
    ledger: Ledger


def _apply(
    gate: Gate, ledger: Ledger, call: Call, crossing: Crossing, *, duplicate: bool
) -> JsonValue:
    if ledger.is_read(call.tool):
        return ledger.read(call.tool)
    earlier = ledger.earlier(call.tool, call.idempotency_key)
    effect = earlier or ledger.apply(
        call.tool, call.args, call.idempotency_key, call.raw
    )
    gate.record(
        Applied(
            life=crossing.life,
            message=crossing.message,
            tool=call.tool,
            args=call.args,
            idempotency_key=call.idempotency_key,
            first=earlier is None,
            late=gate.is_over(crossing.life),
            duplicate=duplicate,
        )
    )
    return effect.result


def _delivered(call: Call, crossing: Crossing, *, duplicate: bool = False) -> Delivered:
    return Delivered(
        life=crossing.life,
        message=crossing.message,
        tool=call.tool,
        args=call.args,
        idempotency_key=call.idempotency_key,
        duplicate=duplicate,
    )
