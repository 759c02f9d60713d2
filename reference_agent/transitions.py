"""How a run moves: pure functions from one state to the next.

They decide, and do nothing else: no clock, no service, no store. The loop calls one of
them after each outside call and saves what it returns.
"""

import json
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import quote

from reference_agent.checkpoint import fingerprint
from reference_agent.state import Call, Completed, ModelCall, Phase, State, Status
from reference_agent.stores.base import encode
from reference_agent.tools import ASK_HUMAN, WAIT, WAIT_SECONDS_MAX

ATTEMPTS_MAX = 8
"""Failed attempts at one outside call, or at one endpoint, after which it is no use."""

LIVES_MAX = 10
"""Lives that may be lost over one checkpoint; then the run is set aside."""

ARGUMENTS_DEPTH_MAX = 100
"""Of what a model may nest; a state around it is a little deeper."""

BACKOFF_SECONDS = 0.25
PAUSE_SECONDS_MAX = 60.0
"""Nobody is waited for longer, whatever it asks: a lease must outlast a move."""


@dataclass(frozen=True)
class Reply:
    """What the model said: `message` goes into the next question as it is."""

    id: str
    message: dict[str, Any]
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class Outcome:
    """What came of a tool call: the text that the model reads."""

    text: str
    applied: bool


def begin(run_id: str, goal: str) -> State:
    """A run that was accepted: its first checkpoint proves that it was."""
    return State(run_id, goal, messages=({"role": "user", "content": goal},))


def resumed(state: State) -> State:
    """A state as it was found: nobody knows whether its pending call was sent."""
    return replace(state, doubt=state.phase is Phase.TOOL)


def asking(state: State) -> State:
    """The next question, announced by its hash."""
    step, asked = state.step + 1, fingerprint(state.messages)
    return _anew(state, phase=Phase.CALL_LLM, step=step, prompt_hash=asked)


def asks_to_wait(reply: Reply) -> bool:
    """Whether the time at which the reply came matters: a wait counts from it."""
    calls = reply.message.get("tool_calls", ())
    return any(call["function"]["name"] == WAIT for call in calls)


def answered(state: State, reply: Reply, now: float = 0.0) -> State:
    """The reply, kept before anything is done about it: it is not asked for again.

    ``now`` only matters where it asks to wait.
    """
    paid = ModelCall(
        state.step,
        state.prompt_hash,
        reply.id,
        reply.prompt_tokens,
        reply.completion_tokens,
    )
    return replace(
        state,
        phase=Phase.PARSE,
        messages=(*state.messages, reply.message),
        model_calls=(*state.model_calls, paid),
        replied_at=now,
        attempts=0,
        retry_at=0.0,
    )


def parsed(state: State, known_tools: Container[str]) -> State:
    """The stored reply, understood: calls to make, or the final answer."""
    message = state.messages[-1]
    calls = tuple(
        _call(state, position, wanted, known_tools)
        for position, wanted in enumerate(message.get("tool_calls", ()))
    )
    if calls:
        return _next_call(replace(state, queue=calls))
    answer = message["content"] or ""
    return replace(state, phase=Phase.DONE, status=Status.DONE, answer=answer)


def recorded(state: State, call: Call, outcome: Outcome) -> State:
    """One result, and in the same write the intent of what comes next."""
    done = Completed(call.key, call.tool, call.arguments, outcome.text, outcome.applied)
    result = {"role": "tool", "tool_call_id": call.id, "content": outcome.text}
    return _next_call(
        replace(
            state,
            messages=(*state.messages, result),
            completed=(*state.completed, done),
        )
    )


def attempt_failed(
    state: State,
    reason: str,
    *,
    sent: bool,
    now: float,
    retry_after: float | None = None,
) -> State:
    """One more failed attempt, or the end. `sent`: the service may have acted.

    The wait doubles with each attempt, and is never shorter than the service asked for.
    """
    attempts = state.attempts + 1
    pause = max(BACKOFF_SECONDS * 2 ** (attempts - 1), retry_after or 0.0)
    counted = replace(
        state,
        attempts=attempts,
        retry_at=now + min(pause, PAUSE_SECONDS_MAX),
        doubt=state.doubt or sent,
    )
    if attempts < ATTEMPTS_MAX:
        return counted
    return failed(counted, f"gave up after {attempts} attempts: {reason}")


def fallen_back(state: State) -> State:
    """The same question to the next endpoint, from the first attempt on."""
    return replace(state, endpoint=state.endpoint + 1, attempts=0, retry_at=0.0)


def announced(state: State) -> State:
    """The intent of the pending call: stored before anything is sent."""
    return _anew(state, phase=Phase.TOOL, pending=state.pending)


def withdrawn(state: State) -> State:
    """As we leave it to others: what we announced and did not send is in no doubt."""
    unsent = state.phase is Phase.TOOL and not state.doubt
    return replace(state, phase=Phase.INTEND) if unsent else state


def waiting(state: State) -> State:
    """The pending call is a wait: it counts from the reply that asked for it, however
    many lives are lost before this is stored."""
    assert state.pending is not None, "a wait is a call"
    until = state.replied_at + state.pending.arguments["seconds"]
    return replace(state, phase=Phase.WAIT, status=Status.PARKED, resume_at=until)


def woken(state: State) -> State:
    """The pending wait is over."""
    assert state.pending is not None, "a wait is a call"
    return recorded(state, state.pending, Outcome("The time is over.", applied=True))


def parked(state: State, reason: str) -> State:
    """It stops, and a person must answer or look."""
    return replace(state, phase=Phase.REVIEW, status=Status.PARKED, reason=reason)


def reviewed(state: State, answer: str) -> State:
    """A person has answered. Raises ValueError for an answer that decides nothing.

    To a gate any answer will do, and the model reads it. For a call in doubt a person
    has looked, and says `done` or `not done`.
    """
    call = state.pending
    assert call is not None, "a run in review has a pending call"
    if call.tool == ASK_HUMAN:
        return withdrawn(recorded(state, call, Outcome(answer, applied=True)))
    if answer == "done":
        outcome = Outcome("It was done; a person has looked.", applied=True)
        return withdrawn(recorded(state, call, outcome))
    if answer == "not done":
        return _anew(state, phase=Phase.INTEND, pending=call)
    raise ValueError(f"say 'done' or 'not done' of {call.tool}, not {answer!r}")


def set_aside(state: State, takes: int) -> State:
    """It was taken too often where it stands, and whoever took it is gone; others
    should not wait for it."""
    what = state.pending.tool if state.pending else state.phase
    return failed(state, f"set aside: {takes - 1} lives were lost at {what}")


def failed(state: State, reason: str) -> State:
    """It gives up for good."""
    return replace(state, phase=Phase.ERROR, status=Status.FAILED, reason=reason)


def key_for(run_id: str, turn: int, position: int, tool: str) -> str:
    """The name of one logical call, the same in every life of the run.

    The provider's call id will not do: a reply that is lost before it is saved is asked
    for again, and comes with new ids. Nor will the arguments: two equal payments that
    were meant are two.
    """
    return "/".join(
        quote(str(part), safe="") for part in (run_id, turn, position, tool)
    )


def _next_call(state: State) -> State:
    if not state.queue:
        return asking(state)
    call, *later = state.queue
    return announced(replace(state, pending=call, queue=tuple(later)))


def _anew(state: State, **changes: Any) -> State:
    """Running, with nothing left over from the call before."""
    cleared = {
        "status": Status.RUNNING,
        "pending": None,
        "doubt": False,
        "attempts": 0,
        "retry_at": 0.0,
        "resume_at": None,
        "reason": None,
    }
    return replace(state, **(cleared | changes))


def _call(
    state: State, position: int, wanted: dict[str, Any], known_tools: Container[str]
) -> Call:
    name = wanted["function"]["name"]
    # A name that the model made up goes no further: keys and logs hold no content.
    tool = name if name in known_tools else "unknown"
    arguments = _arguments(wanted["function"]["arguments"])
    key = key_for(state.run_id, state.step, position, tool)
    problem = _problem(name, arguments, known_tools)
    return Call(wanted["id"], tool, arguments or {}, key, problem)


def _problem(
    name: str, arguments: dict[str, Any] | None, known_tools: Container[str]
) -> str | None:
    """Why a call cannot be made: the model reads it, and may put it right."""
    if name not in known_tools:
        return "there is no such tool"
    if arguments is None:
        return "the arguments are not a JSON object, or nested too deep"
    if name == WAIT and not _is_wait(arguments.get("seconds")):
        return f"seconds must be a number from 0 to {WAIT_SECONDS_MAX}"
    return None


def _is_wait(seconds: object) -> bool:
    return (
        type(seconds) in (int, float) and 0 <= cast(float, seconds) <= WAIT_SECONDS_MAX
    )


def _arguments(text: str) -> dict[str, Any] | None:
    """What the text says, if it is an object that can be stored, and sent as UTF-8."""
    try:
        value = json.loads(text)
        encode({"arguments": value}, depth_max=ARGUMENTS_DEPTH_MAX)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
