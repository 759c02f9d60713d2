"""`answer`: the final answer equals the fault-free run's.

Where the model wobbles it may word it otherwise, and nothing is judged.
"""

from collections.abc import Iterator

from chaoskit.checks.case import Case
from chaoskit.model.verdict import Finding

PROMISE = "answer"
REQUIREMENTS: dict[str, str] = {
    "answer/same": "The final answer equals the one of the fault-free run.",
}


def check(case: Case) -> Iterator[Finding]:
    """Judge one trial."""
    yield from ()
