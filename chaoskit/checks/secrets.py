"""`secrets`: the canary is in no store, log or report, and in no call of a tool.

The key is a canary: whatever it turns up in would hold a real key just so. What people
do not see at once, base64 of a header say, is told all the same.
"""

from collections.abc import Iterator

from chaoskit.checks.case import Case
from chaoskit.model.history import Leaked
from chaoskit.model.verdict import Finding

PROMISE = "secrets"
REQUIREMENTS = {
    "secrets/not-in-store": "The key of the model is in no store.",
    "secrets/not-in-log": "The key of the model is in nothing that the agent prints.",
    "secrets/not-in-calls": "The key of the model is in no call of a tool.",
}
_BEGINNINGS = {"standard ": "not-in-log", "a call of ": "not-in-calls"}


def check(case: Case) -> Iterator[Finding]:
    """Judge one trial: each place is told once, where it was found first."""
    first: dict[str, Leaked] = {}
    for leaked in case.trial.of(Leaked):
        first.setdefault(leaked.where, leaked)
    for where, leaked in first.items():
        yield Finding(
            PROMISE,
            f"secrets/{_kind(where)}",
            f"The API key that the agent was given (OPENAI_API_KEY) is in {where} "
            f"({case.trial.spoken(leaked.life)}): whoever can read "
            "that can use it. Keep it in memory only.",
            expected="the key in requests to the model only",
            observed=where,
            subject=where,
            events=(leaked.seq,),
        )


def _kind(where: str) -> str:
    kinds = (k for words, k in _BEGINNINGS.items() if where.startswith(words))
    return next(kinds, "not-in-store")
