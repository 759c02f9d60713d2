"""`transcript`: requests to the model, and what is stored, pair calls with results.

The endpoint is as strict as the real one, so for requests the check reads off what it
refused, whether each call was told as it was made and with its own result, and whether
the task is there. The stored history is the one that the agent's command `inspect`
prints.
"""

import json
import re
from collections.abc import Hashable, Iterator, Mapping

from pydantic import JsonValue

from chaoskit.checks.case import Case
from chaoskit.checks.doubt import struck_calls
from chaoskit.checks.pairs import unpaired
from chaoskit.checks.script import Script, asked_turns, name_of
from chaoskit.model.calls import identity, spoken
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import Asked, FaultFired, Inspected
from chaoskit.model.manifest import Guarantee
from chaoskit.model.scenario import AskTurn, Scenario, ToolClass, WaitTurn
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding

PROMISE = "transcript"
REQUIREMENTS = {
    "transcript/valid-request": (
        "Every request to the model is one that the real service accepts."
    ),
    "transcript/right-result": "The model is told of each call what its result was.",
    "transcript/task-kept": (
        "The model is told the task in each request, as it is without a fault."
    ),
    "transcript/calls-kept": (
        "The model is told its calls as it made them, as it is without a fault."
    ),
    "transcript/stored-pairs": (
        "The stored history pairs each call with exactly one result."
    ),
}

_CALLS = re.compile(r"[a-z]+_t\d+p\d+(?:, [a-z]+_t\d+p\d+)*")
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"\w{2,}")
_PIECE = re.compile(r"\w+")
_REPEATABLE = (ToolClass.READ, ToolClass.KEYED)
"""Tools whose result can be had again, whatever became of the first one."""


def check(case: Case) -> Iterator[Finding]:
    """Judge every request, and every look at the store."""
    yield from _refused(case.trial)
    yield from [*_mixed_up(case)] or _lost(case)
    yield from _without_task(case)
    yield from _rewritten(case)
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


def _lost(case: Case) -> Iterator[Finding]:
    """A call that was told nothing of what its result is without a fault.

    An agent may wrap a result as it likes, and count attempts in it; but where not one
    word of it is left, where it was cut short, or where a value is gone that the tool
    had given, the model goes on without it. Only calls whose result can be had again,
    and that no fault of a service has spoilt.
    """
    open_to_loss = _repeatable(case)
    for asked in case.trial.of(Asked):
        for call, text in asked.results.items():
            usual, told = case.golden.results.get(call, ""), case.without_run(text)
            if call in open_to_loss and _lacks(usual, told, open_to_loss[call]):
                yield _without_its_own(case, asked, call)
                return


def _lacks(usual: str, told: str, given: JsonValue) -> bool:
    """Whether something of a result is not told that usually is."""
    words, left = set(_WORD.findall(usual)), set(_WORD.findall(told))
    if not words:
        return False
    is_cut = told != usual and usual.startswith(told)
    values = _values(given) & _pieces(usual)
    return not words & left or is_cut or not values <= _pieces(told)


def _values(given: JsonValue) -> set[str]:
    """The words and numbers in a tool's own result; what they are called may change."""
    match given:
        case dict():
            return set().union(*map(_values, given.values()))
        case list():
            return set().union(*map(_values, given))
        case str():
            return set(_PIECE.findall(given))
        case float() | int() if not isinstance(given, bool):
            return set(_PIECE.findall(f"{given:g}"))
    return set()


def _pieces(text: str) -> set[str]:
    """The words and numbers of a text, also of one whose letters JSON has escaped."""
    try:
        plain = json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        plain = ""
    return set(_PIECE.findall(text)) | set(_PIECE.findall(plain))


def _repeatable(case: Case) -> Mapping[str, JsonValue]:
    """The calls that an agent can have the result of whatever happened, by name.

    Each with the result that the scenario gives its tool, if it does. Whose clock stood
    still may have given a call up before its answer was read.
    """
    fired = {Fault.parse(event.fault).kind for event in case.trial.of(FaultFired)}
    stood_still = FaultKind.PAUSE in fired or case.trial.clock_leapt
    if case.manifest.contract.effects is Guarantee.AT_MOST_ONCE or stood_still:
        return {}
    spoilt = {struck for struck, _ in struck_calls(case.trial)}
    tools = case.scenario.tools
    return {
        name_of(call): tools[call.tool].result
        for call in case.scenario.calls()
        if tools[call.tool].cls in _REPEATABLE and identity(call) not in spoilt
    }


def _without_its_own(case: Case, asked: Asked, call: str) -> Finding:
    usual, told = case.golden.results[call], asked.results[call]
    return Finding(
        PROMISE,
        "transcript/right-result",
        f"In {case.trial.spoken(asked.life)} the model was told {told!r} of call "
        f"{call} (turn and position); without a fault it is told {usual!r}. The result "
        "can be had again: send the call once more, under its key.",
        expected=usual,
        observed=told,
        subject=call,
        events=(asked.seq,),
    )


def _without_task(case: Case) -> Iterator[Finding]:
    """A request that says nothing of the task: the model would go on with another."""
    goal = case.scenario.task.goal
    for asked in case.trial.of(Asked):
        if case.golden.tells_task and asked.problem is None and not asked.task:
            yield Finding(
                PROMISE,
                "transcript/task-kept",
                f"In {case.trial.spoken(asked.life)} the model was asked for turn "
                f"{asked.turn} without the task, {goal!r}: no message of the request "
                "holds it. Without a fault each request does, so keep the user's "
                "message with the conversation.",
                expected=goal,
                observed="no message that holds it",
                events=(asked.seq,),
            )
            return


def _rewritten(case: Case) -> Iterator[Finding]:
    """A call that is told with other arguments, or of another tool, than it was made.

    What is added to it is no matter: an agent may fill in what the model left out. A
    reply that a fault has spoilt made no whole calls.
    """
    if not case.golden.tells_calls or _is_cut(case.trial):
        return
    made = {name_of(c): spoken(c.tool, c.args) for c in case.scenario.calls()}
    for asked in asked_turns(case.trial.history):
        for name, told in asked.rewritten.items():
            own = made.get(name, "another")
            yield Finding(
                PROMISE,
                "transcript/calls-kept",
                f"In {case.trial.spoken(asked.life)} the model was told that its call "
                f"{name} (turn and position) had been {told}; it was {own}. Without a "
                "fault calls are told as they were made, so keep the model's message "
                "as it came.",
                expected=own,
                observed=told,
                subject=name,
                events=(asked.seq,),
            )
            return


def _is_cut(trial: Trial) -> bool:
    """Whether a reply of the model may have come in part."""
    fired = (Fault.parse(event.fault) for event in trial.of(FaultFired))
    return any(
        fault.spoils_its_message and fault.at.operation.service == "llm"
        for fault in fired
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
