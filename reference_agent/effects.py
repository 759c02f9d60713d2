"""How one tool call comes to be applied once, whatever happened to it before.

A call is in doubt when it may have been sent and its answer is not stored: the run was
read back from a checkpoint that announces it, or the connection broke. The promise of
its service then decides (`tools.Promise`):

| promise   | in doubt                                                          |
|-----------|-------------------------------------------------------------------|
| read      | ask again                                                         |
| keyed     | send again under the same key: the service repeats its answer     |
| queryable | look whether it was done, and send it only if not                 |
| blind     | stop: a guess would pay twice or not at all, so a person must look |
"""

from typing import Any, Protocol

from reference_agent.state import Call, State
from reference_agent.tools import Promise
from reference_agent.transitions import Outcome


class Trouble(Exception):
    """The service gave no answer. `sent`: it may have acted on the call."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class NoLookUp(Exception):
    """The service cannot be asked what was done."""


class InDoubt(Exception):
    """Nobody can tell whether the call was done."""


class ToolService(Protocol):
    """What does the effects. Both methods raise Trouble."""

    def do(self, tool: str, arguments: dict[str, Any], key: str | None) -> Outcome:
        """Do it, under the key if one is given."""

    def done(self, tool: str, arguments: dict[str, Any]) -> list[Outcome]:
        """What was done so far with exactly these arguments, the oldest first. Raises
        NoLookUp."""


def settle(state: State, call: Call, promise: Promise, service: ToolService) -> Outcome:
    """The outcome of the pending call, applied once. Raises InDoubt and Trouble."""
    if state.doubt and promise is Promise.BLIND:
        raise InDoubt(f"{call.tool} may have been done, and it cannot be asked")
    if state.doubt and promise is Promise.QUERYABLE:
        earlier = _look_up(state, call, service)
        if earlier is not None:
            return earlier
    key = call.key if promise is Promise.KEYED else None
    return service.do(call.tool, call.arguments, key)


def _look_up(state: State, call: Call, service: ToolService) -> Outcome | None:
    """The call's own effect, if there is one.

    Equal calls leave equal effects: those that this run has recorded are accounted for,
    and one more than that is ours. Arguments should therefore name what is unique about
    the effect (an order, a message), or another run's effect is taken for this one's.
    """
    try:
        found = service.done(call.tool, call.arguments)
    except NoLookUp:
        reason = f"{call.tool} may have been done, and its service has no look-up"
        raise InDoubt(reason) from None
    accounted = sum(
        1
        for done in state.completed
        if done.applied and (done.tool, done.arguments) == (call.tool, call.arguments)
    )
    return found[accounted] if len(found) > accounted else None
