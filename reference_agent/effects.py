"""How one tool call comes to be applied once, whatever happened to it before.

A call is in doubt when it may have been sent and its answer is not stored: the run was
read back from a checkpoint that announces it, or the connection broke. The promise of
its service then decides (`tools.Promise`):

| promise   | before it is sent          | in doubt                                  |
|-----------|----------------------------|-------------------------------------------|
| read      |                            | ask again                                 |
| keyed     |                            | send it again under the same key: the     |
|           |                            | service repeats its answer                |
| queryable | look whether it was done,  | the same look decides                     |
|           | and send it only if not    |                                           |
| blind     |                            | stop: a guess would pay twice or not at   |
|           |                            | all, so a person must look                |

The look comes each time, not in doubt alone: a store that forgot its last writes, as a
failover may, does not know that it should be in doubt. A blind call has no such help.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reference_agent.state import Call, State
from reference_agent.tools import Promise
from reference_agent.transitions import Outcome

ASKED_AGAIN = 2
"""How often a tool that says it failed is asked again, where that does no harm."""


class Trouble(Exception):
    """The service gave no answer. `sent`: it may have acted on the call."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class NoLookUp(Exception):
    """The service cannot be asked what was done."""


class ToolFailed(Exception):
    """The tool says that it failed, in words for the model.

    Unlike a refusal, which is an `Outcome`, that may mean anything, an effect whose
    answer went wrong included.
    """


class InDoubt(Exception):
    """Nobody can tell whether the call was done."""


@dataclass(frozen=True)
class Effect(Outcome):
    """What was done before, and the key that it came with, if that is known."""

    key: str | None = None


class ToolService(Protocol):
    """What does the effects. Both methods raise Trouble."""

    def do(self, tool: str, arguments: dict[str, Any], key: str) -> Outcome:
        """Do it. The key is the call's own, the same at each attempt. Raises
        ToolFailed."""

    def done(self, tool: str, arguments: dict[str, Any]) -> Sequence[Effect]:
        """What was done so far with exactly these arguments, the oldest first. Raises
        NoLookUp."""


def settle(state: State, call: Call, promise: Promise, service: ToolService) -> Outcome:
    """The outcome of the pending call, applied once. Raises InDoubt and Trouble."""
    if promise is Promise.QUERYABLE:
        try:
            earlier = _look_up(state, call, service)
        except NoLookUp:
            promise = Promise.BLIND  # whatever the table says
        else:
            if earlier is not None:
                return earlier
    if promise is Promise.BLIND and state.doubt:
        raise InDoubt(f"{call.tool} may have been done, and it cannot be asked")
    try:
        outcome = service.do(call.tool, call.arguments, call.key)
    except ToolFailed as failure:
        return _failed(state, promise, failure)
    if promise is Promise.KEYED and state.doubt and not outcome.applied:
        # It refuses this attempt, and says nothing of the one before it.
        raise InDoubt(f"{call.tool} may have been done, and is refused now")
    return outcome


def _look_up(state: State, call: Call, service: ToolService) -> Outcome | None:
    """The call's own effect, if there is one: the one under its key.

    Where the service keeps no keys, equal calls leave equal effects: those that this
    run has recorded are accounted for, and one more than that is ours. Arguments should
    then name what is unique about the effect (an order, a message), or another run's
    effect is taken for this one's.
    """
    found = service.done(call.tool, call.arguments)
    ours = [effect for effect in found if effect.key == call.key]
    if ours:
        return ours[0]
    unnamed = [effect for effect in found if effect.key is None]
    accounted = sum(
        1
        for done in state.completed
        if done.applied and (done.tool, done.arguments) == (call.tool, call.arguments)
    )
    return unnamed[accounted] if len(unnamed) > accounted else None


def _failed(state: State, promise: Promise, failure: ToolFailed) -> Outcome:
    """It is asked again where a repeat does nothing twice, then the model is told. Of a
    blind tool its word is no proof: that is one more call in doubt."""
    if promise is Promise.BLIND or state.attempts < ASKED_AGAIN:
        raise Trouble("it says that it failed", sent=True) from failure
    return Outcome(f"Error: {failure}", applied=False)
