"""The machine: one saved state, at most one outside call, the next saved state.

Each move reads its state and nothing else, so a run that was killed anywhere goes on
from its checkpoint by the same code that runs it for the first time: there is no second
path for recovery that only disasters would test.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from reference_agent import checkpoint, transitions
from reference_agent.checkpoint import fingerprint
from reference_agent.effects import InDoubt, ToolService, Trouble, settle
from reference_agent.logs import Log, now
from reference_agent.model_client import ModelTrouble
from reference_agent.state import Call, Phase, State, Status
from reference_agent.store import Store
from reference_agent.tools import Tool
from reference_agent.transitions import Outcome, Reply


class Model(Protocol):
    """Whoever answers questions."""

    def ask(self, messages: tuple[dict[str, Any], ...]) -> Reply:
        """The reply to a conversation. Raises ModelTrouble."""


@dataclass(frozen=True)
class Services:
    """All that a run can reach."""

    store: Store
    model: Model
    tool_service: ToolService
    tools: dict[str, Tool]
    log: Log
    sleep: Callable[[float], None] = time.sleep


def run(state: State, services: Services) -> State:
    """Drive the run to where it ends or parks. Raises StoreUnavailable."""
    while state.status is Status.RUNNING:
        state = save(MOVES[state.phase](state, services), services)
    return state


def save(state: State, services: Services) -> State:
    """The state as it is now in the store, one checkpoint further."""
    saved = replace(state, checkpoint_id=state.checkpoint_id + 1, updated_at=now())
    services.store.save(saved.run_id, checkpoint.dump(saved))
    services.log(saved, "checkpoint", phase=saved.phase)
    return saved


def _start(state: State, _: Services) -> State:
    return transitions.asking(state)


def _call_llm(state: State, services: Services) -> State:
    _pause(state, services)
    services.log(state, "model.start", prompt_hash=state.prompt_hash)
    try:
        reply = services.model.ask(state.messages)
    except ModelTrouble as trouble:
        services.log(state, "model.end", "warning", reason=str(trouble))
        reason = f"the model: {trouble}"
        if not trouble.passing:
            return transitions.failed(state, reason)
        return transitions.attempt_failed(state, reason, sent=False)
    services.log(state, "model.end", response_id=reply.id)
    return transitions.answered(state, reply)


def _parse(state: State, services: Services) -> State:
    return transitions.parsed(state, services.tools)


def _tool(state: State, services: Services) -> State:
    call = state.pending
    assert call is not None, "a checkpoint in phase tool announces a call"
    _pause(state, services)
    services.log(
        state, "tool.intent", call=call.key, tool=call.tool, in_doubt=state.doubt
    )
    try:
        outcome = _outcome(state, call, services)
    except InDoubt as doubt:
        return transitions.parked(state, str(doubt))
    except Trouble as trouble:
        reason = f"{call.tool}: {trouble}"
        services.log(state, "tool.trouble", "warning", call=call.key, reason=reason)
        return transitions.attempt_failed(state, reason, sent=trouble.sent)
    services.log(
        state, "tool.result", call=call.key, result_hash=fingerprint(outcome.text)
    )
    return transitions.recorded(state, call, outcome)


def _outcome(state: State, call: Call, services: Services) -> Outcome:
    """A call that cannot be made is the model's to put right, not ours to die of."""
    if call.problem is not None:
        return Outcome(f"Error: {call.problem}", applied=False)
    tool = services.tools.get(call.tool)
    if tool is None:  # it was there when the call was announced
        raise InDoubt(f"{call.tool} is no longer a tool of this agent")
    return settle(state, call, tool.promise, services.tool_service)


def _pause(state: State, services: Services) -> None:
    """Before another attempt: 0.25 s, doubled each time. The count is in the state, so
    a life that starts here waits as the one before it would have."""
    if state.attempts:
        services.sleep(0.25 * 2 ** (state.attempts - 1))


MOVES: dict[Phase, Callable[[State, Services], State]] = {
    Phase.START: _start,
    Phase.CALL_LLM: _call_llm,
    Phase.PARSE: _parse,
    Phase.TOOL: _tool,
}
