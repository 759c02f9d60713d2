"""Extended messages that a relay has not passed on yet."""

from dataclasses import dataclass, field

from chaoskit.wire.postgres.framing import FLUSH
from chaoskit.wire.postgres.meaning import Kind, Meaning
from chaoskit.wire.postgres.steps import Part, Until


@dataclass
class Gathered:
    """All of them up to a Sync, a Flush or a commit, and what their statements do.

    ``alone``: one cannot be done within a transaction block. ``locks`` and ``copies``
    as in `Step`.
    """

    raw: list[bytes] = field(default_factory=list)
    size: int = 0
    alone: bool = False
    locks: bool = False
    copies: bool = False

    def add(self, message: bytes) -> None:
        """One more message."""
        self.raw.append(message)
        self.size += len(message)

    def note(self, each: Meaning) -> None:
        """One of them does this."""
        self.alone |= each.alone
        self.locks |= each.locks
        self.copies |= each.kind is Kind.COPY_IN

    @property
    def joined(self) -> bytes:
        """All of it."""
        return b"".join(self.raw)

    @property
    def part(self) -> Part:
        """All of it, to be answered at once; nothing where there is nothing."""
        if not self.raw:
            return Part()
        return Part(self.joined + FLUSH, Until(completions=len(self.raw)))
