"""One life of one run, by the hand of whoever started it: from where it is, to its end.

Who resumes a run by hand says that its last process is gone. The lease is taken over at
once, and if that one lives after all, its writes are refused.
"""

from dataclasses import replace

from reference_agent import checkpoint, loop, transitions
from reference_agent.loop import Services
from reference_agent.owner import is_gone
from reference_agent.state import Phase, State, Status
from reference_agent.stores.base import Held
from reference_agent.tools import ASK_HUMAN

ANSWER_SECONDS = 5.0
"""To take an answer needs no longer; whoever dies over it holds nobody up for long."""


class UsageError(Exception):
    """The caller must change something."""


def submit(run_id: str, goal: str | None, services: Services) -> State:
    """Keep a new run for whoever works on it; the same one twice is one run."""
    if goal is None:
        raise UsageError("there is no checkpoint, and without --goal nothing to start")
    state = replace(transitions.begin(run_id, goal), checkpoint_id=1)
    if services.store.create(run_id, checkpoint.dump(state)):
        services.log(state, "checkpoint", phase=state.phase)
        return state
    return _same_goal(find(run_id, services), goal)


def go_on(run_id: str, goal: str | None, services: Services, *, resumes: bool) -> State:
    """Start the run, or go on with it, as far as it goes.

    Who `resumes` it says that its last process is gone, and takes it over whoever has
    it. Else a run that somebody has, and who is not surely gone, is left to that one:
    raises HeldByAnother.
    """
    held = services.store.load(run_id)
    if held is None:
        if resumes:
            words = "there is no checkpoint to resume from: starting fresh"
            services.log.say(f"run {run_id}", words)
        submit(run_id, goal, services)
        held = _find(run_id, services)
    state = _same_goal(checkpoint.load(held.document, run_id), goal)
    if state.status is Status.RUNNING or loop.is_over(state, services):
        over = held.owner if resumes else _gone(held.owner)
        return loop.run(loop.take(run_id, services, over=over), services)
    return state


def answer(run_id: str, text: str, gate: str | None, services: Services) -> State:
    """Bring a person's answer to the run that waits for it; it is taken once.

    `gate` names the question that is meant, by its key. The run is let go, for whoever
    goes on with it. Raises HeldByAnother where somebody is answering at this moment.
    """
    held = _find(run_id, services)
    _ask(checkpoint.load(held.document, run_id), gate)
    brief = replace(services, lease_seconds=ANSWER_SECONDS)
    turn = loop.take(run_id, brief, over=_gone(held.owner))
    try:
        _ask(turn.state, gate)  # it may have been answered meanwhile
        state = transitions.reviewed(turn.state, text)
    except (UsageError, ValueError) as error:
        services.store.release(run_id, turn.token)
        raise UsageError(str(error)) from None
    return loop.save(turn, state, services, lets_go=True).state


def find(run_id: str, services: Services) -> State:
    """The run as it is now, without taking it."""
    return checkpoint.load(_find(run_id, services).document, run_id)


def question(state: State) -> str | None:
    """What a person is asked, in words, with the way to answer."""
    call = state.pending
    if state.phase is not Phase.REVIEW or call is None:
        return None
    if call.tool == ASK_HUMAN:
        return f"{call.arguments.get('question')} (gate {call.key})"
    return f"{state.reason}: answer 'done' or 'not done' (gate {call.key})"


def _gone(owner: str | None) -> str | None:
    """Who holds a run, if that one surely runs no more."""
    return owner if owner and is_gone(owner) else None


def _find(run_id: str, services: Services) -> Held:
    held = services.store.load(run_id)
    if held is None:
        raise UsageError("there is no such run")
    return held


def _ask(state: State, gate: str | None) -> None:
    call = state.pending
    if state.phase is not Phase.REVIEW or call is None:
        raise UsageError("there is no open question; was it answered already?")
    if gate is not None and gate != call.key:
        raise UsageError(f"the open question is {call.key}, not {gate}")


def _same_goal(state: State, goal: str | None) -> State:
    if goal is not None and goal != state.goal:
        raise UsageError("this task id belongs to a run with another goal")
    return state
