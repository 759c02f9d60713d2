"""`store`: the next life reads back the newest durable checkpoint of its run, whole."""

from collections.abc import Iterator

from chaoskit.checks.case import Case
from chaoskit.model.verdict import Finding

PROMISE = "store"
REQUIREMENTS: dict[str, str] = {}


def check(case: Case) -> Iterator[Finding]:
    """Judge one trial."""
    yield from ()
