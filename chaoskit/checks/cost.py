"""`cost`: a model reply that was acted on is not asked for again."""

from collections.abc import Iterator

from chaoskit.checks.case import Case
from chaoskit.model.verdict import Finding

PROMISE = "cost"
REQUIREMENTS: dict[str, str] = {
    "cost/not-asked-again": (
        "A reply of the model that was acted on is not asked for again."
    ),
}


def check(case: Case) -> Iterator[Finding]:
    """Judge one trial."""
    yield from ()
