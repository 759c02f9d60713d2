"""Calls in doubt: when an agent may rightly stop and say that it does not know.

A call is in doubt if the agent knew of it, died before its result reached the model or
got no true answer because of a fault, and nothing it can do tells whether the call was
applied. That is so for a blind tool,
and for any tool where the agent promises at-most-once and so may not try again.
"""

from collections.abc import Iterator

from chaoskit.checks.script import Group, Script, asked_turns, open_names
from chaoskit.model.calls import Identity, identity
from chaoskit.model.fault_table import AGENT
from chaoskit.model.history import Asked, Delivered, FaultFired, LifeEnded
from chaoskit.model.manifest import Guarantee, Manifest
from chaoskit.model.scenario import ToolClass
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial

EFFECTS = ("tools", "mcp", "smtp")
"""The services that apply effects."""
_MAIL = "send"


def calls_in_doubt(
    trial: Trial, script: Script, manifest: Manifest, *, parked: bool = False
) -> tuple[Group, ...]:
    """The groups with a call that the agent may leave undecided.

    ``parked``: a life that was asked to end by a signal may have stopped inside a call
    too; it may park for that, and never fail.
    """
    careful = manifest.contract.effects is Guarantee.AT_MOST_ONCE
    stopped = deaths(trial, script, asked=parked)
    died_with = {name for open_calls in stopped for name in open_calls}
    unanswered = _unanswered(trial)
    return tuple(
        group
        for group in script.effects
        if careful or group.tool_class is ToolClass.BLIND
        if (still := open_names(group.calls, asked_turns(trial.history)))
        if died_with & still or group.identity in unanswered
    )


def _unanswered(trial: Trial) -> frozenset[Identity]:
    """The calls one of whose deliveries a fault kept from its true answer.

    A fault strikes while a message is held: its delivery is the newest of its tool; a
    mail, which names no tool, is the newest of its life.
    """
    found, newest = set(), dict[tuple[int, str], Identity]()
    for event in trial.history:
        if isinstance(event, Delivered):
            newest[event.life, event.tool] = newest[event.life, _MAIL] = identity(event)
        elif isinstance(event, FaultFired):
            fault = Fault.parse(event.fault)
            at = fault.at.operation
            if fault.kind in AGENT:
                continue  # the message was answered, or the death counts
            if at.service in EFFECTS and (call := newest.get((event.life, at.op))):
                found.add(call)
    return frozenset(found)


def deaths(
    trial: Trial, script: Script, *, asked: bool = False
) -> Iterator[frozenset[str]]:
    """For each death, the calls that the agent knew of and whose result was missing.

    Calls are named as `Asked.carried` names them. ``asked``: also for lives that ended
    in their own way when a signal asked them to.
    """
    for end in trial.of(LifeEnded):
        if end.ending == "died" or (asked and end.cause == "asked"):
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
    fired = (f.fault for f in trial.of(FaultFired) if f.life == end.life)
    struck = map(Fault.parse, fired)
    return any(f.at.operation.service == "llm" for f in struck if f.ends_its_life)
