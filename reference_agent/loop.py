"""The machine: one saved state, at most one outside call, the next saved state.

Each move reads its state and nothing else, so a run that was killed anywhere goes on
from its checkpoint by the same code that runs it for the first time: there is no second
path for recovery that only disasters would test.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from reference_agent import checkpoint, transitions
from reference_agent.checkpoint import fingerprint
from reference_agent.effects import InDoubt, ToolService, Trouble, settle
from reference_agent.logs import Log, timestamp
from reference_agent.model_client import ModelTrouble
from reference_agent.state import Call, Phase, State, Status
from reference_agent.stop import Stop
from reference_agent.stores.base import NOW, Fenced, Store
from reference_agent.tools import ASK_HUMAN, WAIT, Promise, Tool
from reference_agent.transitions import ATTEMPTS_MAX, LIVES_MAX, Outcome, Reply


class Model(Protocol):
    """Whoever answers questions."""

    endpoints: int
    """How many there are to ask, the first one first."""

    def ask(
        self,
        messages: tuple[dict[str, Any], ...],
        *,
        run_id: str,
        step: int,
        endpoint: int,
    ) -> Reply:
        """The reply to a conversation. Raises ModelTrouble."""


@dataclass(frozen=True)
class Services:
    """All that a run can reach, and who it is that reaches for it."""

    store: Store
    model: Model
    tool_service: ToolService
    tools: dict[str, Tool]
    log: Log
    stop: Stop
    owner: str
    lease_seconds: float
    """Longer than any single call may take: each move renews the lease."""


class HeldByAnother(Exception):
    """Somebody else has the run."""


@dataclass(frozen=True)
class Turn:
    """A run in our hands: its newest state, under the token of our lease."""

    state: State
    token: int


def take(run_id: str, services: Services, *, over: str | None) -> Turn:
    """Lease a run, and read what is the newest once nobody else can change it.

    `over`: whoever held it and is gone. Raises HeldByAnother, UnreadableCheckpoint.
    """
    held = services.store.take(
        run_id, services.owner, services.lease_seconds, over=over
    )
    if held is None:
        raise HeldByAnother("another process has the run")
    state = checkpoint.load(held.document, run_id)
    turn = Turn(transitions.resumed(state), held.token)
    event = "run.start" if turn.state.phase is Phase.START else "run.resume"
    services.log(turn.state, event, phase=turn.state.phase)
    if held.takes > LIVES_MAX and turn.state.status is Status.RUNNING:
        turn = save(turn, transitions.set_aside(turn.state, held.takes), services)
    return turn


def run(turn: Turn, services: Services) -> State:
    """Move the run on, to where it ends, or parks, or we are asked to stop.

    Lets go of it in the end. Raises StoreUnavailable; Fenced if another took it over.
    """
    taken = turn
    while can_move(turn.state, services):
        moved = MOVES[turn.state.phase](turn.state, services)
        if moved is turn.state:  # asked to stop before it began
            break
        turn = save(turn, moved, services)
    if turn.state.status is Status.RUNNING:
        turn = save(turn, transitions.withdrawn(turn.state), services, lets_go=True)
    elif turn is taken:  # others had seen to it before we had it
        services.store.release(turn.state.run_id, turn.token)
    services.log(turn.state, "run.end", status=turn.state.status)
    return turn.state


def save(
    turn: Turn, state: State, services: Services, *, lets_go: bool = False
) -> Turn:
    """The state as it is now in the store, one checkpoint further.

    The lease ends with it where the run does not run on, or where we let go of it.
    """
    saved = replace(
        state, checkpoint_id=state.checkpoint_id + 1, updated_at=timestamp()
    )
    running = saved.status is Status.RUNNING
    try:
        services.store.save(
            saved.run_id,
            turn.token,
            checkpoint.dump(saved),
            wake_at=NOW if running else saved.resume_at,
            keep=running and not lets_go,
        )
    except Fenced:
        services.log(turn.state, "run.end", "warning", status="taken over")
        raise
    services.log(saved, "checkpoint", phase=saved.phase)
    return Turn(saved, turn.token)


def is_over(state: State, services: Services) -> bool:
    """Whether a run that waits has waited long enough."""
    until = state.resume_at
    return until is not None and services.store.now() >= until


def can_move(state: State, services: Services) -> bool:
    """Whether there is something to do now, and time to do it."""
    if services.stop.is_asked:
        return False
    return state.status is Status.RUNNING or is_over(state, services)


def _start(state: State, _: Services) -> State:
    return transitions.asking(state)


def _call_llm(state: State, services: Services) -> State:
    if not _rested(state, services):
        return state
    services.log(state, "model.start", prompt_hash=state.prompt_hash)
    try:
        reply = services.model.ask(
            state.messages,
            run_id=state.run_id,
            step=state.step,
            # The list may have got shorter since the last one was chosen.
            endpoint=min(state.endpoint, services.model.endpoints - 1),
        )
    except ModelTrouble as trouble:
        services.log(state, "model.end", "warning", reason=str(trouble))
        return _unanswered(state, trouble, services)
    services.log(state, "model.end", response_id=reply.id)
    asks_to_wait = transitions.asks_to_wait(reply)
    now = services.store.now() if asks_to_wait else 0.0
    return transitions.answered(state, reply, now)


def _unanswered(state: State, trouble: ModelTrouble, services: Services) -> State:
    """Ask again later, ask the next endpoint, or give up."""
    is_last = state.endpoint + 1 >= services.model.endpoints
    is_spent = state.attempts + 1 >= ATTEMPTS_MAX
    if not is_last and (trouble.elsewhere or is_spent):
        return transitions.fallen_back(state)
    reason = f"the model: {trouble}"
    if not trouble.passing:
        return transitions.failed(state, reason)
    return transitions.attempt_failed(
        state,
        reason,
        sent=False,
        now=services.store.now(),
        retry_after=trouble.retry_after,
    )


def _parse(state: State, services: Services) -> State:
    return transitions.parsed(state, services.tools)


def _intend(state: State, _: Services) -> State:
    return transitions.announced(state)


def _tool(state: State, services: Services) -> State:
    call = _pending(state)
    if not _rested(state, services):
        return state
    services.log(
        state, "tool.intent", call=call.key, tool=call.tool, in_doubt=state.doubt
    )
    if call.problem is None and call.tool == WAIT:
        return transitions.waiting(state)
    if call.problem is None and call.tool == ASK_HUMAN:
        return transitions.parked(state, "it waits for an answer")
    try:
        outcome = _outcome(state, call, services)
    except InDoubt as doubt:
        return transitions.parked(state, str(doubt))
    except Trouble as trouble:
        reason = f"{call.tool}: {trouble}"
        services.log(state, "tool.trouble", "warning", call=call.key, reason=reason)
        now = services.store.now()
        tried = transitions.attempt_failed(state, reason, sent=trouble.sent, now=now)
        if tried.status is Status.FAILED and tried.doubt and _acts(call, services):
            # To fail would say that it was not done.
            return transitions.parked(tried, f"{tried.reason}; it may have been done")
        return tried
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


def _acts(call: Call, services: Services) -> bool:
    return services.tools[call.tool].promise is not Promise.READ


def _wait(state: State, services: Services) -> State:
    services.log(state, "tool.result", call=_pending(state).key)
    return transitions.woken(state)


def _pending(state: State) -> Call:
    assert state.pending is not None, "a checkpoint in this phase announces a call"
    return state.pending


def _rested(state: State, services: Services) -> bool:
    """Sit out the pause before another attempt; False if we were asked to stop.

    Its end is in the state, so a life that starts here waits no longer than the one
    before it would have.
    """
    if not state.attempts:
        return True
    return services.stop.nap(state.retry_at - services.store.now())


MOVES: dict[Phase, Callable[[State, Services], State]] = {
    Phase.START: _start,
    Phase.CALL_LLM: _call_llm,
    Phase.PARSE: _parse,
    Phase.INTEND: _intend,
    Phase.TOOL: _tool,
    Phase.WAIT: _wait,
}
