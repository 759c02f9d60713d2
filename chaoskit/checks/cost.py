"""`cost`: a reply of the model that was acted on is not asked for again.

It was acted on once one of its calls has reached a tool, or the next turn was asked
for. A reply that was lost on its way is paid twice, and that is no finding (see
`repaid`). What a store forgot has to be asked again; and a life that was paused learns
only from its store that another has taken over.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from chaoskit.checks.case import Case
from chaoskit.checks.losses import Losses
from chaoskit.checks.script import Script, asked_turns
from chaoskit.model.calls import identity
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import (
    Asked,
    Crossed,
    Delivered,
    FaultFired,
    LifeContinued,
    LifeStarted,
)
from chaoskit.model.schedule import Fault
from chaoskit.model.services import STORES
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding

PROMISE = "cost"
REQUIREMENTS = {
    "cost/not-asked-again": (
        "A reply of the model that was acted on is not asked for again."
    ),
}


def check(case: Case) -> Iterator[Finding]:
    """Judge every request of one trial."""
    trial = case.trial
    fired = (Fault.parse(event.fault) for event in trial.of(FaultFired))
    if trial.is_fleet and any(fault.kind is FaultKind.SKEW for fault in fired):
        return  # a lease that ran out early makes two lives own the run
    yield from _Bill(case).findings()


def repaid(trial: Trial) -> int:
    """The tokens of requests for a turn that had been asked for before."""
    seen: set[int] = set()
    tokens = 0
    for asked in asked_turns(trial.history):
        if asked.turn in seen and asked.life not in trial.again:
            tokens += asked.prompt_tokens + asked.completion_tokens
        seen.add(asked.turn)
    return tokens


@dataclass
class _Bill:
    """What was asked for, and what was made of it."""

    case: Case
    asked: dict[int, Asked] = field(default_factory=dict)
    acted: dict[int, int] = field(default_factory=dict)
    unaware: set[int] = field(default_factory=set)
    told: set[int] = field(default_factory=set)

    def findings(self) -> Iterator[Finding]:
        trial = self.case.trial
        losses = Losses.of(trial, self.case.scenario)
        script = Script(self.case.scenario)
        for event in trial.history:
            match event:
                case FaultFired() if any(loss.seq == event.seq for loss in losses):
                    self._forget()
                case LifeStarted() if losses.found_by(event):
                    self._forget()
                case LifeContinued():
                    self.unaware.add(event.life)
                case Crossed() if event.at.operation.service in STORES:
                    self.unaware.discard(event.life)
                case Delivered(duplicate=False):
                    self._act(event, script)
                case Asked(problem=None) if event.life not in trial.again:
                    yield from self._ask(event)

    def _forget(self) -> None:
        self.asked.clear()
        self.acted.clear()

    def _act(self, sent: Delivered, script: Script) -> None:
        """A call is known by its group; equal calls of several turns tell nothing."""
        group = script.groups.get(identity(sent))
        turns = {call.turn for call in group.calls} if group else set()
        if len(turns) == 1 and (turn := turns.pop()) in self.asked:
            self.acted.setdefault(turn, sent.seq)

    def _ask(self, asked: Asked) -> Iterator[Finding]:
        """Later turns say that all before them were acted on."""
        since = self.acted.get(asked.turn)
        may_not_know = asked.life in self.unaware
        self.unaware.discard(asked.life)
        if since is not None and not may_not_know and asked.turn not in self.told:
            self.told.add(asked.turn)
            yield self._again(asked, since)
        for turn in self.asked:
            if turn < asked.turn:
                self.acted.setdefault(turn, asked.seq)
        self.asked.setdefault(asked.turn, asked)

    def _again(self, asked: Asked, since: int) -> Finding:
        first = self.asked[asked.turn]
        trial = self.case.trial
        return Finding(
            PROMISE,
            "cost/not-asked-again",
            f"{trial.spoken(asked.life).capitalize()} asked the model again for turn "
            f"{asked.turn}, whose reply had been acted on (event {since}): a reply "
            "must be stored before anything is done about it, or it is paid twice "
            "and may be another one.",
            expected="one request for a reply that was acted on",
            observed=f"another one in {trial.spoken(asked.life)}",
            subject=f"turn {asked.turn}",
            events=(first.seq, since, asked.seq),
        )
