"""`transcript`: every request to the model pairs each call with exactly one result.

The endpoint is as strict as the real one, so the check reads off what it refused.
"""

import re
from collections.abc import Iterator

from chaoskit.checks.case import Case
from chaoskit.model.history import Asked
from chaoskit.model.verdict import Finding

PROMISE = "transcript"
REQUIREMENTS = {
    "transcript/valid-request": (
        "Every request to the model is one that the real service accepts."
    ),
}

_CALLS = re.compile(r"[a-z]+_t\d+p\d+(?:, [a-z]+_t\d+p\d+)*")
_NUMBER = re.compile(r"\d+")


def check(case: Case) -> Iterator[Finding]:
    """Find each kind of refusal once, at its first request."""
    trial = case.trial
    told: set[str] = set()
    for asked in trial.of(Asked):
        if asked.problem is None or _kind(asked.problem) in told:
            continue
        told.add(_kind(asked.problem))
        yield Finding(
            PROMISE,
            "transcript/valid-request",
            f"In {trial.spoken(asked.life)} a request to the model was refused, as the "
            f"real service would: {asked.problem}",
            expected="a request that the service accepts",
            observed=asked.problem,
            subject=_kind(asked.problem),
            events=(asked.seq,),
        )


def _kind(problem: str) -> str:
    """The refusal without what depends on how far the conversation had come."""
    return _NUMBER.sub("N", _CALLS.sub("call", problem))
