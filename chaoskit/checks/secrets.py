"""`secrets`: the canary is in no store, log or report."""

from collections.abc import Iterator

from chaoskit.checks.case import Case
from chaoskit.model.verdict import Finding

PROMISE = "secrets"
REQUIREMENTS: dict[str, str] = {}


def check(case: Case) -> Iterator[Finding]:
    """Judge one trial."""
    yield from ()
