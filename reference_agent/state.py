"""The run state: all that a run needs to go on, as frozen data and nothing else.

Nothing that matters lives on the stack: what is not in here is lost with the process,
and may be.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

SCHEMA = 2
"""Raise it with every change of the fields below: old checkpoints are then refused."""


class Phase(StrEnum):
    """Where the state machine stands. The last two are ends."""

    START = "start"  # accepted, nothing asked yet
    CALL_LLM = "call_llm"  # the model is to be asked
    PARSE = "parse"  # its reply is stored, and not yet acted on
    INTEND = "intend"  # the pending call was surely not sent, and is to be announced
    TOOL = "tool"  # the pending call is to be made: this checkpoint is its intent
    WAIT = "wait"  # the pending call is a wait, until `resume_at`
    REVIEW = "review"  # a person must answer, or look what became of the pending call
    DONE = "done"
    ERROR = "error"


class Status(StrEnum):
    """What a supervisor wants to know."""

    RUNNING = "running"
    PARKED = "parked"
    DONE = "done"
    FAILED = "failed"


CALLING = (Phase.INTEND, Phase.TOOL, Phase.WAIT, Phase.REVIEW)
"""The phases that have a pending call."""


STATUS_IN = {
    Phase.WAIT: Status.PARKED,
    Phase.REVIEW: Status.PARKED,
    Phase.DONE: Status.DONE,
    Phase.ERROR: Status.FAILED,
}
"""What each phase means to a supervisor; the others are running."""


@dataclass(frozen=True)
class Call:
    """One tool call of the model's. `id` is the provider's and new in each reply, `key`
    is ours and stays; `problem` says why the call cannot be made at all."""

    id: str
    tool: str
    arguments: dict[str, Any]
    key: str
    problem: str | None = None


@dataclass(frozen=True)
class Completed:
    """The done-marker of a call. `applied` is false where nothing was done for it."""

    key: str
    tool: str
    arguments: dict[str, Any]
    result: str
    applied: bool


@dataclass(frozen=True)
class ModelCall:
    """One answered question: what it asked, by hash, and what the answer cost."""

    step: int
    prompt_hash: str
    response_id: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class State:
    """One run. `step` counts questions to the model, `checkpoint_id` counts saves.

    Times are seconds since the epoch, by the store's clock.
    """

    run_id: str
    goal: str
    phase: Phase = Phase.START
    status: Status = Status.RUNNING
    step: int = 0
    checkpoint_id: int = 0
    updated_at: str = ""  # ISO 8601, UTC
    messages: tuple[dict[str, Any], ...] = ()
    replied_at: float = 0.0  # when the newest reply came, if it asks to wait
    prompt_hash: str = ""  # of the question that is being asked
    pending: Call | None = None  # the call whose intent is recorded
    doubt: bool = False  # the pending call may have been sent before
    queue: tuple[Call, ...] = ()  # the calls of this turn that come after it
    completed: tuple[Completed, ...] = ()
    model_calls: tuple[ModelCall, ...] = ()
    attempts: int = 0  # failed attempts at the outside call of this phase
    retry_at: float = 0.0  # the next attempt comes no earlier
    endpoint: int = 0  # which of the model's endpoints is asked
    resume_at: float | None = None  # when the pending wait is over
    answer: str | None = None
    reason: str | None = None  # why it is parked or failed
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        """A state that could not go on must neither be saved nor be read back."""
        if self.status is not STATUS_IN.get(self.phase, Status.RUNNING):
            raise ValueError(f"{self.status} in phase {self.phase}")
        if self.phase in CALLING and not self.pending:
            raise ValueError(f"in phase {self.phase} without a pending call")
        if self.phase is Phase.WAIT and self.resume_at is None:
            raise ValueError("in phase wait without a time to go on")
        if self.phase is Phase.PARSE and not self.messages:
            raise ValueError("in phase parse without a reply")
