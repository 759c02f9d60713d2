"""Schedules: the faults of one trial, and the order among schedules.

A schedule and a scenario are all it takes to run a trial again. Its text form joins
faults with `` + ``: ``kill@0:tools.pay[o-1]#1:after + error(429)@1:llm.chat#1:before``.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

from chaoskit.model.address import Address, Edge, unquoted
from chaoskit.model.fault_table import cell, flaw_of
from chaoskit.model.faults import Cell, FaultKind, kind_of

JOINT = " + "
KILLS = frozenset({FaultKind.KILL, FaultKind.KILL_ONE, FaultKind.POWERLOSS})
"""The faults by which a process dies of SIGKILL."""
SPOILERS = frozenset(
    {
        *(FaultKind.ERROR, FaultKind.FULL, FaultKind.REFUSE, FaultKind.DROP_REPLY),
        *(FaultKind.TEAR, FaultKind.RESTART),
    }
)
"""The faults that an agent meets as an error, or as a connection that broke."""

_TEXT = re.compile(
    r"(?P<kind>[^@(]*)(?:\((?P<argument>[^()\s]*)\))?@(?P<at>.*)", re.DOTALL
)
_PLAIN = "".join(c for c in map(chr, range(33, 127)) if c not in "%()@")


@dataclass(frozen=True)
class Fault:
    """One fault at one address; ``argument`` is None where the default is meant."""

    kind: FaultKind
    at: Address
    argument: str | None = None

    @cached_property
    def text(self) -> str:
        """The text form, ``error(429)@0:llm.chat#1:before``."""
        if self.argument is None:
            return f"{self.kind}@{self.at}"
        return f"{self.kind}({quote(self.argument, safe=_PLAIN)})@{self.at}"

    def __str__(self) -> str:
        return self.text

    @property
    def ends_its_life(self) -> bool:
        """Whether the life that meets it is killed there."""
        is_torn_write = (
            self.kind is FaultKind.TEAR and self.at.operation.service == "files"
        )
        return self.kind in KILLS or is_torn_write

    @property
    def chosen(self) -> str | None:
        """The argument, or the default of the fault on this operation."""
        default = None if self._cell is None else self._cell.default
        return default if self.argument is None else self.argument

    @property
    def is_denial(self) -> bool:
        """Whether it is the service's own word that nothing was done."""
        if self.kind is FaultKind.FULL:
            return True
        return self._cell is not None and self.chosen in self._cell.denials

    @property
    def is_final(self) -> bool:
        """Whether it is the service's own word that trying again is of no use."""
        return self._cell is not None and self.chosen in self._cell.final

    @property
    def spoils_its_message(self) -> bool:
        """Whether the agent, which lives on, gets no good answer."""
        return self.kind in SPOILERS and not self.ends_its_life

    @property
    def _cell(self) -> Cell | None:
        found = cell(self.kind, self.at.operation)
        return found if isinstance(found, Cell) else None

    @classmethod
    def parse(cls, text: str) -> "Fault":
        """Read the text form; ValueError says what was expected."""
        found = _TEXT.fullmatch(text.strip())
        if found is None:
            raise ValueError(
                f"{text!r} is not a fault; expected KIND@ADDRESS or "
                "KIND(ARGUMENT)@ADDRESS"
            )
        kind, argument = kind_of(found["kind"]), found["argument"]
        fault = cls(
            kind,
            Address.parse(found["at"]),
            None if argument is None else unquoted(argument),
        )
        if flaw := flaw_of(kind, fault.argument, fault.at):
            raise ValueError(flaw)
        return fault


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
    edge = _EDGES.index(at.edge.name), at.edge.part or 0
    return life, *place, *edge, fault.kind.value, fault.argument or ""


_EDGES = (Edge.BEFORE.name, Edge.AFTER.name, Edge.of_part(1).name)
