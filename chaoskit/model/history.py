"""The history of a trial: everything that happened, in one order.

Events are frozen and have a JSON form, one a line, so that a saved trial can be
judged again without an agent. ``seq`` is the place in the order; ``t`` is seconds
since the trial began and is for people only: no verdict may rest on it, except that
of a durable wait.
"""

import math
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
)

from chaoskit.model.address import Address

Purpose = Literal["start", "resume", "submit", "answer", "again"]
Cause = Literal["itself", "fault", "asked", "limit", "stopped", "restored", "cut"]
Ending = Literal["done", "parked", "failed", "died"]
Outcome = Literal["done", "parked", "failed", "endless", "cut"]
Status = Literal["running", "parked", "done", "failed"]


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    seq: int = 0
    t: float = 0.0
    life: int


class LifeStarted(_Event):
    """A process was started for the run. ``again``: once more after it was done.

    ``process`` is which one of a long-lived agent: ``worker.2``, ``submit``.
    """

    kind: Literal["life.started"] = "life.started"
    purpose: Purpose
    answer: str | None = None
    process: str | None = None


class LifeEnded(_Event):
    """A life is over: reaped, with nothing of it left alive.

    ``cause`` says what ended it: ``itself``, a scheduled ``fault``, a ``term`` or
    ``int`` that had ``asked`` it to, in its own way or after its grace, a time
    ``limit``, ``stopped`` (a process of a long-lived agent, by SIGTERM, once its part
    was over), ``restored`` (its crash is a snapshot that was taken in an earlier
    trial), or ``cut`` (the harness had seen enough). ``orphans`` counts descendants
    that outlived the root process and were ended with it. ``tail`` holds its last lines
    of output.
    """

    kind: Literal["life.ended"] = "life.ended"
    cause: Cause
    ending: Ending
    pid: int = 0
    code: int | None = None
    signal: int | None = None
    orphans: int = 0
    tail: tuple[str, ...] = ()
    output: str = ""
    process: str | None = None


class LifeContinued(_Event):
    """A life that was paused runs on: the one that took over has ended, or parked.

    The message at which it was paused is delivered now.
    """

    kind: Literal["life.continued"] = "life.continued"


class StatusSeen(_Event):
    """The command `status` of a long-lived agent said something new of the run.

    ``status`` is None where it could not be understood; ``said`` is why.
    """

    kind: Literal["status.seen"] = "status.seen"
    status: Status | None
    said: str = ""


class Crossed(_Event):
    """A message reached an edge.

    ``late``: its life was already over. ``pieces``: how many pieces its reply has, or
    bytes its write, where it can be cut between them.
    """

    kind: Literal["crossed"] = "crossed"
    address: str
    late: bool = False
    pieces: int | None = None

    @property
    def at(self) -> Address:
        """The address, parsed."""
        return Address.parse(self.address)

    @classmethod
    def of(
        cls,
        seq: int,
        t: float,
        life: int,
        address: str,
        pieces: int | None,
        *,
        late: bool,
    ) -> "Crossed":
        """One of our own making, unchecked: it is made for each message, twice.

        Pydantic's check would be a tenth of what a relay adds to a request.
        """
        event = cls.__new__(cls)
        fields = {"seq": seq, "t": t, "life": life, "kind": "crossed"}
        event.__dict__.update(fields, address=address, late=late, pieces=pieces)
        object.__setattr__(event, "__pydantic_fields_set__", _CROSSED)
        object.__setattr__(event, "__pydantic_extra__", None)
        object.__setattr__(event, "__pydantic_private__", None)
        return event


_CROSSED = set(Crossed.model_fields)


class FaultFired(_Event):
    """A scheduled fault struck, at its address.

    ``idle``: it found nothing to do there, as an `expire` of a key that is not there,
    and so puts nothing to the test. ``message`` is the one that was held: of a call of
    a tool the number that its delivery has.
    """

    kind: Literal["fault"] = "fault"
    fault: str
    idle: bool = False
    message: int | None = None


class Asked(_Event):
    """A request to the model.

    ``op`` is the operation that it crosses as; ``turn`` is the place in the script that
    it was answered from; ``carried`` names the calls, as ``turn.position``, whose
    results it holds; ``results`` are the texts of those that no earlier request of the
    trial has told the model in the same words; ``contents`` are the texts of its
    messages that no earlier request of the trial held; ``task``: one of its messages
    holds the task; ``rewritten`` are the calls that it does not tell as the model made
    them, each as it tells them. ``problem`` is why it was refused, and then it has
    told nothing.
    ``past_end``: the script was already over. ``place`` is its address, but for the
    edge. ``whole``: after so many pieces of the reply all was said, and why it ended;
    None where that is not before the last one.
    """

    kind: Literal["asked"] = "asked"
    op: str = "chat"
    place: str = ""
    turn: int
    carried: tuple[str, ...] = ()
    results: dict[str, str] = Field(default_factory=dict)
    contents: tuple[str, ...] = ()
    task: bool = True
    rewritten: dict[str, str] = Field(default_factory=dict)
    problem: str | None = None
    past_end: bool = False
    whole: int | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Delivered(_Event):
    """A call reached a tool, whole; it may or may not be applied later.

    ``message`` is unique in the trial and joins a delivery to its application.
    ``duplicate``: the network delivered it twice, and this is the second time.
    """

    kind: Literal["delivered"] = "delivered"
    message: int
    tool: str
    args: dict[str, JsonValue]
    idempotency_key: str | None = None
    duplicate: bool = False


class Applied(_Event):
    """A tool did its effect, or (``first`` false) repeated an earlier answer."""

    kind: Literal["applied"] = "applied"
    message: int
    tool: str
    args: dict[str, JsonValue]
    idempotency_key: str | None = None
    first: bool = True
    late: bool = False
    duplicate: bool = False


LOGGED_DEPTH_MAX = 50


def _writable(value: Any, depth: int = 0) -> Any:
    """What an agent logged, as JSON can hold it.

    Python's reader takes NaN, halves of surrogate pairs and any depth from an agent;
    none of them could be written into a history and read back.
    """
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if not isinstance(value, dict | list | tuple):
        return value
    if depth == LOGGED_DEPTH_MAX:
        return "..."
    if not isinstance(value, dict):
        return [_writable(item, depth + 1) for item in value]
    return {_writable(k): _writable(item, depth + 1) for k, item in value.items()}


class Logged(_Event):
    """A log line of the agent, parsed. ``line`` is its place in the output file."""

    kind: Literal["logged"] = "logged"
    stream: Literal["stdout", "stderr"]
    line: int
    entry: Annotated[dict[str, JsonValue], BeforeValidator(_writable)]


class Wreck(_Event):
    """What a death left behind: the fingerprint of the world before the next life."""

    kind: Literal["wreck"] = "wreck"
    state: str


class Inspected(_Event):
    """What the agent's command `inspect` printed: what the next life reads back.

    ``when``: after a death and before the next life, where the run rests (parked, or
    before a life that was paused goes on), or at the end. ``after`` is the life whose
    end came before. ``problem`` says why nothing was understood; the other fields are
    None then, as is each field that it did not print.
    """

    kind: Literal["inspected"] = "inspected"
    when: Literal["death", "rest", "end"]
    after: int
    checkpoint_id: int | None = None
    status: Annotated[str | None, BeforeValidator(_writable)] = None
    transcript: Annotated[JsonValue, BeforeValidator(_writable)] = None
    problem: str = ""


class Leaked(_Event):
    """The canary key was found where it must not be; each place is told once.

    ``where`` is a place in words: ``standard error``, ``redis key agent:log:{run}``.
    """

    kind: Literal["leaked"] = "leaked"
    where: str


class ClockLeapt(_Event):
    """The machine's time of day leapt by ``seconds``: set, or it had stood still.

    From there an agent's timers and leases end when nobody could have told. ``life`` is
    -1, as it is nobody's doing.
    """

    kind: Literal["clock.leapt"] = "clock.leapt"
    seconds: float


class RunEnded(_Event):
    """How the run ended for good; ``reason`` says it in words."""

    kind: Literal["run.ended"] = "run.ended"
    outcome: Outcome
    reason: str = ""
    answer: str | None = None


EVENTS = (
    LifeStarted,
    LifeEnded,
    LifeContinued,
    StatusSeen,
    Crossed,
    FaultFired,
    Asked,
    Delivered,
    Applied,
    Logged,
    Wreck,
    Inspected,
    Leaked,
    ClockLeapt,
    RunEnded,
)
"""Every class of event, in the order in which a life meets them."""

Event = Annotated[
    LifeStarted
    | LifeEnded
    | LifeContinued
    | StatusSeen
    | Crossed
    | FaultFired
    | Asked
    | Delivered
    | Applied
    | Logged
    | Wreck
    | Inspected
    | Leaked
    | ClockLeapt
    | RunEnded,
    Field(discriminator="kind"),
]
History = tuple[Event, ...]

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def to_line(event: Event) -> str:
    """The event as one line of JSON, without the line's end."""
    # What `model_dump_json` comes down to; that costs twice as much.
    return event.__pydantic_serializer__.to_json(event).decode()


def storable(event: Event) -> Event:
    """The same event with every text of it as JSON can hold it (see `Logged`)."""
    return _EVENT.validate_python(_writable(event.model_dump()))


def from_line(line: str) -> Event:
    """Read what `to_line` wrote; pydantic's ValidationError where it did not."""
    return _EVENT.validate_json(line)
