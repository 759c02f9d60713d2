"""Schedules: the faults of one trial, and the order among schedules.

A schedule and a scenario are all it takes to run a trial again. Its text form joins
faults with `` + ``: ``kill@0:tools.pay[o-1]#1:after + kill@1:llm.chat#1:before``.
"""

from dataclasses import dataclass
from functools import cached_property

from chaoskit.model.address import Address, Edge
from chaoskit.model.faults import FaultKind

JOINT = " + "


@dataclass(frozen=True)
class Fault:
    """One fault at one address."""

    kind: FaultKind
    at: Address

    @cached_property
    def text(self) -> str:
        """The text form, ``kill@0:llm.chat#1:before``."""
        return f"{self.kind}@{self.at}"

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: str) -> "Fault":
        """Read the text form; ValueError says what was expected."""
        kind, separator, address = text.strip().partition("@")
        if not separator:
            raise ValueError(f"{text!r} is not a fault; expected KIND@ADDRESS")
        if kind not in list(FaultKind):
            known = ", ".join(FaultKind)
            raise ValueError(
                f"{kind!r} is no fault that this version can inject; it has: {known}"
            )
        return cls(FaultKind(kind), Address.parse(address))


@dataclass(frozen=True)
class Schedule:
    """Faults in the order in which they are meant to fire; empty for a clean run."""

    faults: tuple[Fault, ...] = ()

    def __str__(self) -> str:
        return JOINT.join(map(str, self.faults))

    def __len__(self) -> int:
        return len(self.faults)

    def then(self, fault: Fault) -> "Schedule":
        """This schedule with one more fault at its end."""
        return Schedule((*self.faults, fault))

    @property
    def order(self) -> tuple[int, tuple[object, ...]]:
        """Sort key of the one total order: fewer faults first, then by address.

        Fewer faults make a better story, so they come first; what remains is an
        arbitrary but fixed order, so that the same findings always give the same
        smallest schedule.
        """
        return len(self.faults), tuple(map(_fault_order, self.faults))

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        """Read the text form; an empty text is the clean run.

        Raises:
            ValueError: with a sentence that names the part that is wrong.
        """
        if not text.strip():
            return cls()
        return cls(tuple(Fault.parse(part) for part in text.split(JOINT)))


def _fault_order(fault: Fault) -> tuple[object, ...]:
    at = fault.at
    life = -1 if at.life is None else at.life
    asked = at.operation
    # No key at all comes before the empty one: two schedules are never equal in order.
    place = (asked.service, asked.op, asked.key is not None, asked.key or "", at.nth)
    return life, *place, at.edge is Edge.AFTER, fault.kind.value
