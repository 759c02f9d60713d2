"""`fence`: after a takeover the old life changes nothing.

No effect, no checkpoint, no status.
"""

from collections.abc import Iterator

from chaoskit.checks.case import Case
from chaoskit.model.verdict import Finding

PROMISE = "fence"
REQUIREMENTS: dict[str, str] = {}


def check(case: Case) -> Iterator[Finding]:
    """Judge one trial."""
    yield from ()
