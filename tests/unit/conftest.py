"""Hand-written histories: a small language in which a trial is told, event by event."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from chaoskit.model.address import Address, Edge, Operation
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import (
    Applied,
    Asked,
    Crossed,
    Delivered,
    Event,
    FaultFired,
    Inspected,
    LifeContinued,
    LifeEnded,
    LifeStarted,
    Logged,
    RunEnded,
    Wreck,
)
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.trial import SIGKILL, Trial
from chaoskit.model.visit import Visit, Visited

RUN = "run-0a1b2c3d"
Message = tuple[str, str, str | None]
Turn = dict[str, Any] | Sequence[tuple[str, dict[str, Any]]]


@dataclass
class Story:
    """One trial, told in order. Every method returns the story, so that it reads on."""

    events: list[Event] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    life: int = -1
    t: float = 0.0
    unfired: tuple[Fault, ...] = ()
    _counts: dict[tuple[int, Operation], int] = field(default_factory=dict)
    last: Address | None = None

    def add(self, event: Event) -> "Story":
        """Any event, at the end."""
        placed = event.model_copy(update={"seq": len(self.events), "t": self.t})
        self.events.append(placed)
        return self

    @property
    def seq(self) -> int:
        """The number of the event that was told last."""
        return len(self.events) - 1

    def after(self, seconds: float) -> "Story":
        """Let time pass."""
        self.t += seconds
        return self

    def start(self, purpose: Any = "start", answer: str | None = None) -> "Story":
        """The next life."""
        self.life += 1
        return self.add(LifeStarted(life=self.life, purpose=purpose, answer=answer))

    def resume(self) -> "Story":
        """The next life, as a supervisor would start it."""
        return self.start("resume")

    def cross(
        self, service: str, op: str, key: str | None = None, *, after: bool = True
    ) -> "Story":
        """A message goes through ``before`` and, unless it is held there, ``after``."""
        self._arrive(Operation(service, op, key))
        return self.reply() if after else self

    def ask(self, turn: int, *carried: str, reply: bool = True, **more: Any) -> "Story":
        """A request to the model; ``reply``: it got as far as ``after``."""
        at = self._number(Operation("llm", "chat"))
        self.add(Asked(life=self.life, turn=turn, carried=carried, **more))
        self._cross(at)
        return self.reply() if reply else self

    def deliver(self, tool: str, key: str | None = None, **args: Any) -> "Story":
        """A call reaches a tool and is held, or dropped, before it is applied."""
        at = self._number(Operation("tools", tool, _first(args)))
        call = {"tool": tool, "args": args, "idempotency_key": key}
        self.add(Delivered(life=self.life, message=len(self.events), **call))
        return self._cross(at)

    def call(
        self,
        tool: str,
        key: str | None = None,
        *,
        first: bool = True,
        late: bool = False,
        **args: Any,
    ) -> "Story":
        """A call reaches a tool and is applied; not ``first``: answered as before."""
        return self.deliver(tool, key, **args).lands(first=first, late=late)

    def lands(
        self, sent: Delivered | None = None, *, first: bool = True, late: bool = False
    ) -> "Story":
        """A call is applied, and answered: the newest of this life, or that one."""
        mine = (e for e in self.events if e.life == self.life)
        sent = sent or [e for e in mine if isinstance(e, Delivered)][-1]
        fields = sent.model_dump(exclude={"kind", "seq", "t"})
        self.add(Applied(first=first, late=late, **fields))
        return self.reply(late=late)

    def look(self, tool: str, **args: Any) -> "Story":
        """A read, or a look-up: nothing is applied."""
        return self.deliver(tool, **args).reply()

    def log(self, event: str, checkpoint_id: Any = 0, **entry: Any) -> "Story":
        """A log line as it should be, but for what is given."""
        line = {"event": event, "run_id": RUN, "step": 1, "level": "info"}
        return self.line({**line, "checkpoint_id": checkpoint_id, **entry})

    def line(self, entry: dict[str, Any], stream: Any = "stderr") -> "Story":
        """A log line, word for word."""
        logged = Logged(life=self.life, stream=stream, line=self.seq, entry=entry)
        return self.add(logged)

    def killed(self, kind: FaultKind = FaultKind.KILL, cause: Any = "fault") -> "Story":
        """A fault strikes at the last crossing."""
        assert self.last is not None, "nothing has crossed"
        fault = Fault(kind, self.last)
        self.faults.append(fault)
        self.add(FaultFired(life=self.life, fault=str(fault)))
        return self.end("died", cause, signal=SIGKILL)

    def struck(
        self, kind: FaultKind, edge: Edge = Edge.AFTER, argument: str | None = None
    ) -> "Story":
        """A fault strikes at the message that crossed last, and the life goes on."""
        assert self.last is not None, "nothing has crossed"
        fault = Fault(kind, self.last.at_edge(edge), argument)
        self.faults.append(fault)
        return self.add(FaultFired(life=self.life, fault=str(fault)))

    def inspected(
        self, when: Any = "death", checkpoint_id: int | None = None, **more: Any
    ) -> "Story":
        """What is stored is looked at."""
        number = {"checkpoint_id": checkpoint_id}
        return self.add(
            Inspected(life=-1, when=when, after=self.life, **number, **more)
        )

    def continued(self, life: int = 0) -> "Story":
        """A life that was paused goes on, and the story with it."""
        self.life = life
        return self.add(LifeContinued(life=life))

    def killed_at(self) -> "Story":
        """A fault strikes at a write to the store."""
        return self.cross("redis", "set", "x", after=False).killed()

    def crashed(self, **more: Any) -> "Story":
        """The life dies of itself."""
        return self.end("died", **{"code": 1, **more})

    def end(self, ending: Any, cause: Any = "itself", **more: Any) -> "Story":
        """The life ends."""
        event = LifeEnded(life=self.life, cause=cause, ending=ending, **more)
        self.add(event)
        if ending == "died":
            self.add(Wreck(life=self.life, state="?"))
        return self

    def done(self) -> "Story":
        """The life ends done, and so does the life that is started once more."""
        return self.end("done", code=0).start("again").end("done", code=0).over("done")

    def parks(self) -> "Story":
        """The life parks, and nothing will wake it."""
        return self.end("parked", code=75).over("parked")

    def fails(self) -> "Story":
        """The life gives the run up."""
        return self.end("failed", code=65, tail=("it cannot go on",)).over("failed")

    def over(self, outcome: Any, reason: str = "") -> "Story":
        """The run ends; the life after ``done`` is no part of it."""
        starts = [e for e in self.events if isinstance(e, LifeStarted)]
        life = next((s.life for s in starts[::-1] if s.purpose != "again"), 0)
        return self.add(RunEnded(life=life, outcome=outcome, reason=reason))

    def trial(self, schedule: Schedule | None = None) -> Trial:
        """What was told, as a trial."""
        faults = Schedule(tuple(self.faults)) if schedule is None else schedule
        return Trial("0001", RUN, faults, tuple(self.events), self.unfired)

    def _number(self, operation: Operation) -> Address:
        nth = self._counts.get((self.life, operation), 0) + 1
        self._counts[self.life, operation] = nth
        return Address(self.life, operation, nth, Edge.BEFORE)

    def _arrive(self, operation: Operation) -> "Story":
        return self._cross(self._number(operation))

    def _cross(self, at: Address, *, late: bool = False) -> "Story":
        self.last = at
        return self.add(Crossed(life=self.life, address=str(at), late=late))

    def reply(self, *, late: bool = False) -> "Story":
        """The message that crossed last gets as far as ``after``."""
        at = self.last
        assert at is not None
        edge = Address(at.life, at.operation, at.nth, Edge.AFTER)
        return self._cross(edge, late=late)


def _first(args: dict[str, Any]) -> str | None:
    return next((str(value) for value in args.values()), None)


def _turn(turn: Turn) -> dict[str, Any]:
    if isinstance(turn, dict):
        return turn
    return {"call": [{"tool": tool, "args": args} for tool, args in turn]}


@pytest.fixture(scope="session")
def told() -> Callable[[], Story]:
    """Begins a story: its first life has started."""
    return lambda: Story().start()


@pytest.fixture(scope="session")
def play() -> Callable[..., Visited]:
    """Runs a schedule with an agent that sends the same messages in every life.

    ``parks``: when all are sent it parks, and another life sends them once more.
    """

    def run(schedule: Schedule, *messages: Message, parks: bool = False) -> Visited:
        story = Story().start()
        due = [fault.at for fault in schedule.faults]
        for purpose in ["answer", None] if parks else [None]:
            while not _live(story, messages, due):
                story.resume()
            if purpose:
                story.end("parked").start(purpose)
        unfired = tuple(fault for fault in schedule.faults if fault.at in due)
        trial = replace(story.done().trial(schedule), unfired=unfired)
        return Visited(Visit(schedule), trial)

    return run


def _live(story: Story, messages: Sequence[Message], due: list[Address]) -> bool:
    """Whether a life came to its end."""
    for message in messages:
        for go_on in (lambda m: story.cross(*m, after=False), lambda _: story.reply()):
            go_on(message)
            if story.last in due:
                due.remove(story.last)
                story.killed()
                return False
    return True


@pytest.fixture(scope="session")
def make_scenario() -> Callable[..., Scenario]:
    """A scenario from its turns; ``tools`` maps names to classes."""

    def make(
        *turns: Turn, tools: dict[str, str] | None = None, **more: Any
    ) -> Scenario:
        script = [*map(_turn, turns), {"say": "Done."}]
        answers = [f"answer {n}" for n, t in enumerate(script) if "ask" in t]
        fields = {
            "name": "unit",
            "agent": "agent.yaml",
            "task": {"goal": "Do it"},
            "llm": {"script": script},
            "tools": {n: {"class": c} for n, c in (tools or {}).items()},
            "human": answers,
        }
        return Scenario.model_validate({**fields, **more})

    return make


class _Counted(tuple[Event, ...]):
    """A history that counts how often it is read, in whole or in part."""

    __slots__ = ()
    times = 0

    def __iter__(self) -> Any:
        _Counted.times += 1
        return super().__iter__()

    def __getitem__(self, place: Any) -> Any:
        _Counted.times += isinstance(place, slice)
        return super().__getitem__(place)


@pytest.fixture(scope="session")
def readings() -> Callable[..., int]:
    """How often a function of a trial reads the history of a story."""

    def count(judge: Callable[[Trial], Any], story: Story) -> int:
        trial = story.trial()
        _Counted.times = 0
        judge(replace(trial, history=_Counted(trial.history)))
        return _Counted.times

    return count


@pytest.fixture(scope="session")
def make_manifest() -> Callable[..., Manifest]:
    """A manifest with a guarantee; the rest goes into its contract, or is its `log`."""

    def make(effects: str = "exactly-once", **contract: Any) -> Manifest:
        log = contract.pop("log", {})
        return Manifest.model_validate(
            {
                "name": "unit-agent",
                "launch": "process",
                "start": ["agent"],
                "store": "redis",
                "contract": {"effects": effects, **contract},
                "log": log,
            }
        )

    return make
