"""`loud/gives-up`: a call at which life after life dies is given up.

Only where the agent promises that. A call is an operation at one turn: the next turn
may make it once more, and one turn may make several that have their key in common.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from chaoskit.checks.case import Case
from chaoskit.checks.held import Held
from chaoskit.checks.losses import Losses
from chaoskit.checks.script import Script
from chaoskit.model.address import Operation
from chaoskit.model.calls import Identity, canonical, identity
from chaoskit.model.history import Asked, Delivered, FaultFired, LifeEnded
from chaoskit.model.scenario import LogicalCall
from chaoskit.model.schedule import Fault
from chaoskit.model.services import EFFECTS
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding


def never_gives_up(case: Case) -> Iterator[Finding]:
    """Count deaths by call; those that no observer can tell apart count together."""
    limit = case.manifest.contract.max_attempts
    if limit is None or Losses.of(case.trial, case.scenario):
        return
    tries: Counter[_Call] = Counter()
    told: set[str] = set()
    for fired, call in _deaths(case.trial, Script(case.scenario)):
        tries[call] += 1
        if tries[call] > limit * call.alike and call.operation not in told:
            told.add(call.operation)
            yield _tried_again(call.operation, tries[call], limit * call.alike, fired)


@dataclass(frozen=True)
class _Call:
    """``which`` tells calls of one operation and turn apart, where that can be told.

    ``alike`` is how many it stands for all the same.
    """

    operation: str
    turn: int
    which: Identity | None = None
    alike: int = 1


def _deaths(trial: Trial, script: Script) -> Iterator[tuple[FaultFired, _Call]]:
    """The faults at calls of which lives died, each with the call.

    A life that asks the model asks for its own newest turn; one that calls a tool may
    have been told of the call by an earlier life.
    """
    turns: dict[int, int] = {}
    newest: dict[int, tuple[FaultFired, Delivered | None]] = {}
    held = Held()
    for event in trial.history:
        match event:
            case Asked(problem=None):
                turns[event.life] = event.turn
            case Delivered():
                held.see(event)
            case FaultFired():
                newest[event.life] = event, held.by(event)
            case LifeEnded(ending="died") if event.life in newest:
                fired, sent = newest[event.life]
                fault = Fault.parse(fired.fault)
                if not fault.ends_its_life and event.cause != "itself":
                    continue
                if fault.at.operation.service in EFFECTS:
                    yield fired, _call(fault, max([-1, *turns.values()]), sent, script)
                elif fault.at.operation.service == "llm":
                    asked = turns.get(event.life, -1)
                    yield fired, _Call(str(fault.at.operation), asked)


def _call(fault: Fault, turn: int, sent: Delivered | None, script: Script) -> _Call:
    """The call of a tool that a fault struck, or the look-up of one."""
    operation = fault.at.operation
    if sent is None:
        alike = [c for c in script.calls if _is_looked_up(c, operation)]
        which = None
    else:
        group = script.groups.get(identity(sent))
        which = group.identity if group else identity(sent)
        alike = list(group.calls) if group else []
    count = sum(call.turn == turn for call in alike)
    return _Call(str(operation), turn, which, max(1, count))


def _is_looked_up(call: LogicalCall, operation: Operation) -> bool:
    """A look-up has the first argument as its key, and names no other."""
    first = next(iter(call.args.values()), None)
    key = first if first is None or isinstance(first, str) else canonical(first)
    return f"{call.tool}?" == operation.op and key == operation.key


def _tried_again(call: str, count: int, limit: int, fired: FaultFired) -> Finding:
    return Finding(
        "loud",
        "loud/gives-up",
        f"{count} lives died at {call}, and the agent says that it gives a run up "
        f"after {limit}: a call that kills its agent takes everything with it until "
        "somebody gives it up.",
        expected=f"failed after {limit} deaths",
        observed=f"{count} deaths",
        subject=call,
        events=(fired.seq,),
    )
