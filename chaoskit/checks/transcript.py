"""`transcript`: requests to the model, and what is stored, pair calls with results.

The endpoint is as strict as the real one, so for requests the check reads off what it
refused, and whether each call was told its own result. The stored history is the one
that the agent's command `inspect` prints.
"""

import re
from collections.abc import Hashable, Iterator, Mapping

from chaoskit.checks.case import Case
from chaoskit.checks.pairs import unpaired
from chaoskit.checks.script import Script, asked_turns, name_of
from chaoskit.model.calls import identity
from chaoskit.model.history import Asked, Inspected
from chaoskit.model.scenario import AskTurn, Scenario, WaitTurn
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding

PROMISE = "transcript"
REQUIREMENTS = {
    "transcript/valid-request": (
        "Every request to the model is one that the real service accepts."
    ),
    "transcript/right-result": "The model is told of each call what its result was.",
    "transcript/stored-pairs": (
        "The stored history pairs each call with exactly one result."
    ),
}

_CALLS = re.compile(r"[a-z]+_t\d+p\d+(?:, [a-z]+_t\d+p\d+)*")
_NUMBER = re.compile(r"\d+")


def check(case: Case) -> Iterator[Finding]:
    """Judge every request, and every look at the store."""
    yield from _refused(case.trial)
    yield from _mixed_up(case)
    yield from _stored(case.trial)


def _refused(trial: Trial) -> Iterator[Finding]:
    """Find each kind of refusal once, at its first request."""
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


def _mixed_up(case: Case) -> Iterator[Finding]:
    """A call that was told what another one's result is without a fault."""
    owners: dict[str, list[str]] = {}
    for call, text in case.golden.results.items():
        owners.setdefault(text, []).append(call)
    kinds, told = _kinds(case.scenario), set[tuple[str, str]]()
    for asked in asked_turns(case.trial.history):
        for call, text in asked.results.items():
            others = owners.get(case.without_run(text), [call])
            if call not in case.golden.results or call in others:
                continue
            if not any(
                _may_be_told(call, other, kinds, told=(other, text) in told)
                for other in others
            ):
                yield _not_its_own(case, asked, call, others[0])
                return
        told |= {*asked.results.items()}


def _may_be_told(
    call: str, other: str, kinds: Mapping[str, Hashable], *, told: bool
) -> bool:
    """Whether a call may rightly have the result that another has without a fault.

    The waits of a script may each take as long as another does usually, and what gates
    are told is judged by `human`. Equal calls have receipts in the order in which they
    were made; but what one was told of an earlier turn is not the next one's result.
    """
    if kinds.get(call) is None or kinds.get(call) != kinds.get(other):
        return False
    is_later = int(call.partition(".")[0]) > int(other.partition(".")[0])
    is_tool = isinstance(kinds[call], tuple)
    return not (is_tool and told and is_later)


def _kinds(scenario: Scenario) -> dict[str, Hashable]:
    """What each call looks like from outside, by its name."""
    groups = Script(scenario).groups
    found: dict[str, Hashable] = {
        name_of(call): groups[identity(call)].identity for call in scenario.calls()
    }
    for turn, said in enumerate(scenario.llm.script):
        if isinstance(said, AskTurn | WaitTurn):
            found[f"{turn}.0"] = type(said)
    return found


def _not_its_own(case: Case, asked: Asked, call: str, other: str) -> Finding:
    return Finding(
        PROMISE,
        "transcript/right-result",
        f"In {case.trial.spoken(asked.life)} the model was told of call {call} (turn "
        f"and position) what is the result of call {other}: "
        f"{asked.results[call]!r}.",
        expected=case.golden.results[call],
        observed=asked.results[call],
        subject=call,
        events=(asked.seq,),
    )


def _stored(trial: Trial) -> Iterator[Finding]:
    for seen in trial.of(Inspected):
        is_over = seen.when == "end" and trial.ended.outcome == "done"
        problem = unpaired(seen.transcript, is_over=is_over)
        if problem and not seen.problem:
            yield Finding(
                PROMISE,
                "transcript/stored-pairs",
                f"What is stored after life {seen.after} does not pair calls with "
                f"results: {problem}.",
                expected="exactly one result for each call",
                observed=problem,
                events=(seen.seq,),
            )
            return


def _kind(problem: str) -> str:
    """The refusal without what depends on how far the conversation had come."""
    return _NUMBER.sub("N", _CALLS.sub("call", problem))
