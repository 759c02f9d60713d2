"""The errors of PostgreSQL that a fault names, as the server words them.

See "PostgreSQL Error Codes" in its documentation. A fatal one ends the connection.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from chaoskit.wire.postgres.framing import error


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error: its SQLSTATE, its words, and whether the connection ends with it."""

    code: str
    text: str
    is_fatal: bool = False

    @property
    def raw(self) -> bytes:
        """As the server sends it."""
        return error("FATAL" if self.is_fatal else "ERROR", self.code, self.text)


_ALL = (
    Refusal("40001", "could not serialize access due to concurrent update"),
    Refusal("40P01", "deadlock detected"),
    Refusal("55P03", "could not obtain lock on row in relation"),
    Refusal("53100", "could not extend file: No space left on device"),
    Refusal(
        "57P01", "terminating connection due to administrator command", is_fatal=True
    ),
    Refusal("53300", "sorry, too many clients already", is_fatal=True),
)
REFUSALS: Mapping[str, Refusal] = {each.code: each for each in _ALL}
"""By SQLSTATE."""

DISK_FULL = "53100"
NOT_RELAYED = Refusal(
    "0A000", "chaoskit does not relay replication connections", is_fatal=True
)
NOT_YOURS = Refusal(
    "28000", "this role is chaoskit's own; use the one in DATABASE_URL", is_fatal=True
)
