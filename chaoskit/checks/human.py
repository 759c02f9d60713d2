"""`human`: each gate is asked once and each answer used once, by its own gate."""

from collections.abc import Iterator

from chaoskit.checks.case import Case
from chaoskit.model.verdict import Finding

PROMISE = "human"
REQUIREMENTS: dict[str, str] = {}


def check(case: Case) -> Iterator[Finding]:
    """Judge one trial."""
    yield from ()
