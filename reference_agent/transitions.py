"""How a run moves: pure functions from one state to the next.

They decide, and do nothing else: no clock, no service, no store. The loop calls one of
them after each outside call and saves what it returns.
"""

import json
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from reference_agent.checkpoint import fingerprint
from reference_agent.state import Call, Completed, ModelCall, Phase, State, Status

ATTEMPTS_MAX = 5
"""Failed attempts at one outside call after which the run gives up."""


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
    return replace(state, doubt=state.pending is not None)


def asking(state: State) -> State:
    """The next question, announced by its hash."""
    return replace(
        state,
        phase=Phase.CALL_LLM,
        step=state.step + 1,
        prompt_hash=fingerprint(state.messages),
        pending=None,
        doubt=False,
        attempts=0,
    )


def answered(state: State, reply: Reply) -> State:
    """The reply, kept before anything is done about it: it is not asked for again."""
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
        attempts=0,
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


def attempt_failed(state: State, reason: str, *, sent: bool) -> State:
    """One more failed attempt, or the end. `sent`: the service may have acted."""
    attempts = state.attempts + 1
    counted = replace(state, attempts=attempts, doubt=state.doubt or sent)
    if attempts < ATTEMPTS_MAX:
        return counted
    return failed(counted, f"gave up after {attempts} attempts: {reason}")


def parked(state: State, reason: str) -> State:
    """It stops, and a person must look."""
    return replace(state, phase=Phase.REVIEW, status=Status.PARKED, reason=reason)


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
    return replace(
        state,
        phase=Phase.TOOL,
        pending=state.queue[0],
        queue=state.queue[1:],
        doubt=False,
        attempts=0,
    )


def _call(
    state: State, position: int, wanted: dict[str, Any], known_tools: Container[str]
) -> Call:
    name = wanted["function"]["name"]
    # A name that the model made up goes no further: keys and logs hold no content.
    tool = name if name in known_tools else "unknown"
    arguments = _arguments(wanted["function"]["arguments"])
    problem = None
    if name not in known_tools:
        problem = "there is no such tool"
    elif arguments is None:
        problem = "the arguments are not a JSON object"
    key = key_for(state.run_id, state.step, position, tool)
    return Call(wanted["id"], tool, arguments or {}, key, problem)


def _arguments(text: str) -> dict[str, Any] | None:
    """What the text says, if it is an object that goes through JSON and UTF-8 again."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
