"""The closed set of faults, each with its meaning in one line.

The set is closed on purpose: a fault is data that can be written in a schedule,
saved and replayed, never code that a user runs inside the harness. Which service knows
which fault, at which edges and with which arguments, stands in `fault_table`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from chaoskit.model.errors import did_you_mean


class FaultKind(StrEnum):
    """What happens to the agent or the world at a crossing."""

    KILL = "kill"
    """SIGKILL to the whole process group while the message is held."""
    KILL_ONE = "kill_one"
    """SIGKILL to the agent's first process alone; its children live on."""
    TERM = "term"
    """SIGTERM to the group; the message goes on, and so may the agent for its grace."""
    INT = "int"
    """SIGINT to the group; the message goes on, and so may the agent for its grace."""
    PAUSE = "pause"
    """The life is stopped, another runs to its end, then the first one goes on."""
    DROP_REPLY = "drop_reply"
    """The request is applied, the connection is reset, and the agent lives."""
    REFUSE = "refuse"
    """The connection is reset with nothing applied, and the agent lives."""
    ERROR = "error"
    """The service answers with one of its own errors."""
    DELAY = "delay"
    """The message is held for so many seconds, and then goes on."""
    TEAR = "tear"
    """Only the first pieces of a reply, or bytes of a write, get through."""
    DUPLICATE = "duplicate"
    """The network delivers the request twice."""
    RESTART = "restart"
    """The store is killed and started again, under its durability setting."""
    ROLLBACK = "rollback"
    """The store forgets its last acknowledged writes, as a failover does."""
    EXPIRE = "expire"
    """A single key is gone, as at the end of its time to live or by an eviction."""
    FULL = "full"
    """There is no space for this write."""
    POWERLOSS = "powerloss"
    """The machine stops: the agent is killed, and what was not synced is lost."""
    SKEW = "skew"
    """The agent's clock jumps by so many seconds."""


class Wanted(NamedTuple):
    """A fault that a search is to try; without an argument, with all it may have."""

    kind: FaultKind
    argument: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Wanted":
        """Read ``kill`` or ``error(429)``; ValueError says what was expected."""
        name, bracket, rest = text.partition("(")
        if bracket and not rest.endswith(")"):
            raise ValueError(f"{text!r} lacks its closing bracket")
        return cls(kind_of(name), rest[:-1] if bracket else None)

    def __str__(self) -> str:
        return self.kind if self.argument is None else f"{self.kind}({self.argument})"


def kind_of(name: str) -> FaultKind:
    """The kind of that name; ValueError says which there are."""
    if name in list(FaultKind):
        return FaultKind(name)
    guess = did_you_mean(name, FaultKind)
    expected = f"expected one of {', '.join(FaultKind)}"
    raise ValueError(f"{name!r} is no fault; {guess or expected}")


@dataclass(frozen=True)
class Cell:
    """What one fault is on one service.

    ``edges`` are before, after or part; ``arguments`` are the ones it may have, the
    first one the default, all of them tried by a search. ``number``: the argument is
    any number above zero of what the name says (seconds, writes), or below it for
    ``skew``. ``text``: it is free text. ``only``: the operations it makes sense on; all
    of them where it is empty. ``also``: arguments that no search tries by itself.
    ``denials`` are the arguments by which a service says that it did nothing: a search
    has no service lie, and tries them before only. ``final``: those after which trying
    again is of no use.
    """

    does: str
    edges: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    number: str = ""
    text: str = ""
    only: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()
    denials: frozenset[str] = frozenset()
    final: frozenset[str] = frozenset()

    @property
    def default(self) -> str | None:
        """The argument of a fault that is written without one."""
        return self.arguments[0] if self.arguments else None


@dataclass(frozen=True)
class Empty:
    """Why a fault makes no sense on a service."""

    because: str
