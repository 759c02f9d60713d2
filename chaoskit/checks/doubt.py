"""Calls in doubt: when an agent may rightly stop and say that it does not know.

A call is in doubt if the agent knew of it, died before its result reached the model or
got no true answer because of a fault, and nothing it can do tells whether the call was
applied. That is so for a blind tool, and for any tool where the agent promises
at-most-once and so may not try again. While a life is paused it is so for a queryable
tool as well: a look-up does not show a call that has yet to land.
"""

from collections.abc import Iterator

from chaoskit.checks.held import Held
from chaoskit.checks.script import Group, Script, asked_turns, open_names
from chaoskit.model.calls import Identity, identity
from chaoskit.model.fault_table import AGENT
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import Asked, Delivered, FaultFired, LifeEnded, RunEnded
from chaoskit.model.manifest import Guarantee, Manifest
from chaoskit.model.scenario import ToolClass
from chaoskit.model.schedule import Fault
from chaoskit.model.services import EFFECTS
from chaoskit.model.trial import Trial

Stop = LifeEnded | FaultFired
"""The end of a life, or a pause of it."""


def calls_in_doubt(
    trial: Trial, script: Script, manifest: Manifest, *, parked: bool = False
) -> tuple[Group, ...]:
    """The groups with a call that the agent may leave undecided.

    ``parked``: a life that was asked to end by a signal may have stopped inside a call
    too; it may park for that, and never fail.
    """
    careful = manifest.contract.effects is Guarantee.AT_MOST_ONCE
    paused_with = _names(pauses(trial, script))
    died_with = _names(deaths(trial, script, asked=parked)) | paused_with
    unanswered = frozenset(call for call, fault in struck_calls(trial) if _hides(fault))
    return tuple(
        group
        for group in script.effects
        if (still := open_names(group.calls, asked_turns(trial.history)))
        if (
            (careful or group.tool_class is ToolClass.BLIND)
            and (died_with & still or group.identity in unanswered)
        )
        or (group.tool_class is ToolClass.QUERYABLE and paused_with & still)
    )


def _hides(fault: Fault) -> bool:
    """Whether a fault leaves the caller without a true answer.

    A refusal by the service is one, and so is the answer to the network's second copy.
    """
    return not fault.is_denial and fault.kind is not FaultKind.DUPLICATE


def struck_calls(trial: Trial) -> Iterator[tuple[Identity, Fault]]:
    """The calls one of whose messages was struck by a fault of the service."""
    held = Held()
    for event in trial.history:
        if isinstance(event, Delivered):
            held.see(event)
        elif isinstance(event, FaultFired):
            fault = Fault.parse(event.fault)
            if fault.kind in AGENT or fault.at.operation.service not in EFFECTS:
                continue  # the message was answered, or the death counts
            if (delivery := held.by(event.life, fault)) is not None:
                yield identity(delivery), fault


def deaths(
    trial: Trial, script: Script, *, asked: bool = False
) -> Iterator[frozenset[str]]:
    """For each death, the calls that the agent knew of and whose result was missing.

    Calls are named as `Asked.carried` names them. ``asked``: also for lives that ended
    in their own way when a signal asked them to.
    """
    for end in trial.of(LifeEnded):
        if end.ending == "died" or (asked and end.cause == "asked"):
            yield _open_at(trial, script, end)


def pauses(trial: Trial, script: Script) -> Iterator[frozenset[str]]:
    """The same for each pause: who takes over cannot tell it from a death."""
    for fired in trial.of(FaultFired):
        if Fault.parse(fired.fault).kind is FaultKind.PAUSE:
            yield _open_at(trial, script, fired)


def _open_at(trial: Trial, script: Script, stop: Stop) -> frozenset[str]:
    known = {asked.turn for asked in answered(trial, stop)}
    calls = [call for call in script.calls if call.turn in known]
    before = (e for e in asked_turns(trial.history) if e.seq < stop.seq)
    return frozenset(open_names(calls, before))


def _names(stops: Iterator[frozenset[str]]) -> frozenset[str]:
    return frozenset(name for names in stops for name in names)


def answered(trial: Trial, stop: Stop | RunEnded) -> list[Asked]:
    """The requests whose reply had gone out before a stop: not one that was struck."""
    answered: dict[int, Asked] = {}
    newest: dict[int, Asked] = {}
    for event in trial.history[: stop.seq + 1]:
        if isinstance(event, Asked) and event.problem is None:
            newest[event.life] = answered[event.seq] = event
        elif isinstance(event, FaultFired) and event.life in newest:
            fault = Fault.parse(event.fault)
            holds = fault.kind is FaultKind.PAUSE and event is stop
            lost = fault.ends_its_life or fault.spoils_its_message or holds
            if lost and fault.at.operation.service == "llm":
                answered.pop(newest[event.life].seq, None)
    return list(answered.values())
