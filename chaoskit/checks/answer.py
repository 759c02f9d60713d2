"""`answer`: the final answer equals the fault-free run's.

Where the model wobbles it may word it otherwise, and nothing is judged; nor where a
call was answered with an error, and the model was told so: an agent may sum that up.
What a store has lost excuses nothing: the answer is the last word about the run.
"""

from collections.abc import Iterator

from chaoskit.checks.case import Case
from chaoskit.checks.doubt import struck_calls
from chaoskit.model.history import Asked
from chaoskit.model.scenario import SayTurn, Scenario
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
    if said == expected or _was_told_otherwise(case):
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


def unknown(case: Case) -> str | None:
    """Why no answer can be held against that of a fault-free run, if so."""
    if case.scenario.llm.wobble is not Wobble.NONE:
        return None
    if case.trial.ended.outcome != "done" or case.golden.answer is not None:
        return None
    if case.trial.ended.answer is None:
        return (
            "the agent printed none; the last line that is no log line is taken for it"
        )
    return "the fault-free runs ended with answers that differ"


def compared_in_part(scenario: Scenario) -> str | None:
    """Why less of an answer is compared than the model says, if so."""
    last = next(
        (t for t in reversed(scenario.llm.script) if isinstance(t, SayTurn)), None
    )
    if last is None or len(last.say.strip().splitlines()) < 2:
        return None
    return "of the answer only the last line is compared, and the script says several"


def _was_told_otherwise(case: Case) -> bool:
    """Whether a call failed by a fault, so that the model was told of it."""
    if not any(fault.spoils_its_message for _, fault in struck_calls(case.trial)):
        return False
    usual = case.golden.results
    told = (
        (call, case.without_run(text))
        for asked in case.trial.of(Asked)
        for call, text in asked.results.items()
    )
    return any(text != usual.get(call, text) for call, text in told)
