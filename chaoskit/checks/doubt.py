"""Calls in doubt: when an agent may rightly stop and say that it does not know.

A call is in doubt if the agent knew of it, died before its result reached the model,
and nothing it can do tells whether the call was applied. That is so for a blind tool,
and for any tool where the agent promises at-most-once and so may not try again.
"""

from collections.abc import Iterator

from chaoskit.checks.script import Group, Script, asked_turns, open_names
from chaoskit.model.history import Asked, FaultFired, LifeEnded
from chaoskit.model.manifest import Guarantee, Manifest
from chaoskit.model.scenario import ToolClass
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial


def calls_in_doubt(
    trial: Trial, script: Script, manifest: Manifest
) -> tuple[Group, ...]:
    """The groups with a call that the agent may leave undecided."""
    careful = manifest.contract.effects is Guarantee.AT_MOST_ONCE
    died_with = {name for open_calls in deaths(trial, script) for name in open_calls}
    return tuple(
        group
        for group in script.effects
        if careful or group.tool_class is ToolClass.BLIND
        if died_with & open_names(group.calls, asked_turns(trial.history))
    )


def deaths(trial: Trial, script: Script) -> Iterator[frozenset[str]]:
    """For each death, the calls that the agent knew of and whose result was missing.

    Calls are named as `Asked.carried` names them.
    """
    for end in trial.of(LifeEnded):
        if end.ending == "died":
            known = {asked.turn for asked in _answered(trial, end)}
            calls = [call for call in script.calls if call.turn in known]
            before = (e for e in asked_turns(trial.history) if e.seq < end.seq)
            yield frozenset(open_names(calls, before))


def _answered(trial: Trial, end: LifeEnded) -> list[Asked]:
    """The requests whose reply had gone out before a death: not one that was held."""
    asked = [e for e in asked_turns(trial.history) if e.seq < end.seq]
    if asked and _held_at_the_model(trial, end):
        asked.pop()
    return asked


def _held_at_the_model(trial: Trial, end: LifeEnded) -> bool:
    struck = (f.fault for f in trial.of(FaultFired) if f.life == end.life)
    return any(Fault.parse(fault).at.operation.service == "llm" for fault in struck)
