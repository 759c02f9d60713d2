"""`answer`: the final answer equals the fault-free run's.

Where the model wobbles it may word it otherwise, and nothing is judged.
"""

from collections.abc import Iterator

from chaoskit.checks.case import Case
from chaoskit.model.script import Wobble
from chaoskit.model.verdict import Finding

PROMISE = "answer"
REQUIREMENTS = {
    "answer/same": "The final answer equals the one of the fault-free run.",
}


def check(case: Case) -> Iterator[Finding]:
    """Judge the answer of a run that is done."""
    ended, expected = case.trial.ended, case.golden.answer
    wobbles = case.scenario.llm.wobble is not Wobble.NONE
    if ended.outcome != "done" or expected is None or wobbles:
        return
    said = None if ended.answer is None else case.without_run(ended.answer)
    if said == expected:
        return
    shown = "nothing" if said is None else repr(said)
    yield Finding(
        PROMISE,
        "answer/same",
        f"The final answer was {shown}, and without a fault it is {expected!r}: what "
        "a run has come to must be read from what it has stored.",
        expected=expected,
        observed=said,
        events=(ended.seq,),
    )
