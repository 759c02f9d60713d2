"""`loud`: what cannot be recovered fails with a reason; never exit 0 with work left."""

from collections.abc import Iterator

from chaoskit.checks.case import Case
from chaoskit.model.verdict import Finding

PROMISE = "loud"
REQUIREMENTS: dict[str, str] = {}


def check(case: Case) -> Iterator[Finding]:
    """Judge one trial."""
    yield from ()
