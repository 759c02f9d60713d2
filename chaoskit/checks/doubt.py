"""Calls in doubt: when an agent may rightly stop and say that it does not know.

A call is in doubt if the agent knew of it, died before its result reached the model or
got no true answer because of a fault, and nothing it can do tells whether the call was
applied. That is so for a blind tool, and for any tool where the agent promises
at-most-once and so may not try again. While a life is paused it is so for a queryable
tool as well: a look-up does not show a call that has yet to land.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from chaoskit.checks.held import Held
from chaoskit.checks.script import Group, Script, asked_turns, name_of, open_names
from chaoskit.model.calls import Identity, identity
from chaoskit.model.fault_table import AGENT
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import Asked, Delivered, Event, FaultFired, LifeEnded
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
            if (delivery := held.by(event)) is not None:
                yield identity(delivery), fault


def deaths(
    trial: Trial, script: Script, *, asked: bool = False
) -> Iterator[frozenset[str]]:
    """For each death, the calls that the agent knew of and whose result was missing.

    Calls are named as `Asked.carried` names them. ``asked``: also for lives that ended
    in their own way when a signal asked them to.
    """
    heard = _Heard(script)
    for event in trial.history:
        heard.take(event)
        if isinstance(event, LifeEnded) and (
            event.ending == "died" or (asked and event.cause == "asked")
        ):
            yield heard.open_calls(event)


def pauses(trial: Trial, script: Script) -> Iterator[frozenset[str]]:
    """The same for each pause: who takes over cannot tell it from a death."""
    heard = _Heard(script)
    for event in trial.history:
        heard.take(event)
        if isinstance(event, FaultFired) and _is_pause(event):
            yield heard.open_calls(event)


def _names(stops: Iterator[frozenset[str]]) -> frozenset[str]:
    return frozenset(name for names in stops for name in names)


def _is_pause(fired: FaultFired) -> bool:
    return Fault.parse(fired.fault).kind is FaultKind.PAUSE


def answered(trial: Trial, script: Script) -> list[Asked]:
    """The requests whose reply was heard."""
    heard = _Heard(script)
    for event in trial.history:
        heard.take(event)
    return list(heard.replies.values())


@dataclass
class _Heard:
    """The requests whose reply was heard so far, and what they have told.

    One that was struck was not: unless nothing of it was missing but its end, or its
    life has made a call that only the reply can have told it of.
    """

    script: Script
    replies: dict[int, Asked] = field(default_factory=dict)
    newest: dict[int, Asked] = field(default_factory=dict)
    acted: set[int] = field(default_factory=set)
    carried: set[str] = field(default_factory=set)
    """The calls whose results a request has carried, heard or not."""

    def take(self, event: Event) -> None:
        asked = self.newest.get(event.life)
        match event:
            case Asked(problem=None):
                self.newest[event.life] = self.replies[event.seq] = event
                self.carried.update(event.carried)
            case Delivered() if asked and _is_called(event, asked, self.script):
                self.acted.add(asked.seq)
                self.replies[asked.seq] = asked
            case FaultFired() if asked and _is_lost(event, asked):
                if asked.seq not in self.acted:
                    self.replies.pop(asked.seq, None)

    def open_calls(self, stop: Stop) -> frozenset[str]:
        """The calls that are known at a stop and have no result.

        A reply that a pause holds back is not known yet.
        """
        known = {seq: asked.turn for seq, asked in self.replies.items()}
        held = self.newest.get(stop.life)
        if held and held.seq not in self.acted and _holds_a_reply(stop):
            known.pop(held.seq, None)
        turns = set(known.values())
        calls = {name_of(call) for call in self.script.calls if call.turn in turns}
        return frozenset(calls - self.carried)


def _is_called(delivery: Delivered, asked: Asked, script: Script) -> bool:
    """Whether a call is one that the reply asks for."""
    group = script.groups.get(identity(delivery))
    return group is not None and any(c.turn == asked.turn for c in group.calls)


def _is_lost(fired: FaultFired, asked: Asked) -> bool:
    """Whether a fault has kept a reply from its life for good."""
    fault = Fault.parse(fired.fault)
    if fault.at.operation.service != "llm":
        return False
    is_whole = asked.whole is not None and (fault.at.edge.part or 0) >= asked.whole
    return fault.ends_its_life or (fault.spoils_its_message and not is_whole)


def _holds_a_reply(stop: Stop) -> bool:
    if not isinstance(stop, FaultFired) or not _is_pause(stop):
        return False
    return Fault.parse(stop.fault).at.operation.service == "llm"
