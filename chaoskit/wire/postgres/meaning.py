"""What a relay has to know of a statement."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a statement does to the transaction that it is in."""

    READ = "nothing"
    WRITE = "changes something that is kept once the transaction is committed"
    COPY_IN = "a write whose rows follow by themselves"
    BEGIN = "begins a transaction block"
    COMMIT = "ends it, and keeps its changes"
    ROLLBACK = "ends it, and drops its changes"
    PREPARE = "gives a statement a name"
    EXECUTE = "does the statement of that name"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one statement means.

    ``op`` and ``key`` stand in the address of its crossing. ``alone``: it cannot be
    inside a transaction block, or commits by itself. ``locks``: until the end of the
    transaction it may keep everybody from reading a table. ``schema``: it may make or
    change a function. ``chain``: the next transaction begins at once. ``name`` is a
    prepared statement's, ``of`` its meaning. ``counted``: the rows that the server
    counts are all that it changes.
    """

    kind: Kind = Kind.READ
    op: str = ""
    key: str | None = None
    alone: bool = False
    locks: bool = False
    schema: bool = False
    chain: bool = False
    name: str = ""
    of: "Meaning | None" = None
    counted: bool = False


READ = Meaning()
LOOK = Meaning(op="select")
"""What changes nothing either, and may stand in a transaction block of the relay's."""
TX = "tx"
"""The key of an operation that ends a transaction block."""
