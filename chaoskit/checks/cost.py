"""`cost`: a reply of the model that was acted on is not asked for again.

It was acted on once one of its calls has reached a tool, once the run has parked for
it, or once the next turn was asked for. A reply that was lost on its way is paid twice,
and that is no finding (see `repaid`). What a store forgot has to be asked again, and so
has what a crash may take back; and a life knows what others did only once its store
could have told it.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from chaoskit.checks.case import Case
from chaoskit.checks.losses import Losses
from chaoskit.checks.script import Script, asked_turns
from chaoskit.checks.setbacks import keeps, takes_back
from chaoskit.checks.takeover import heard_from_store
from chaoskit.model.calls import identity
from chaoskit.model.history import (
    Asked,
    Crossed,
    Delivered,
    Event,
    FaultFired,
    LifeEnded,
    LifeStarted,
)
from chaoskit.model.scenario import AskTurn, WaitTurn
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import SIGKILL, Trial
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
    if trial.is_fleet and trial.clock_leapt:
        return  # a lease that ran out early makes two lives own the run
    yield from _Bill(case).findings()


def repaid(trial: Trial) -> int:
    """The tokens of requests for a turn that had been asked for before.

    What an earlier trial has paid, in whose crash this one began, is that one's.
    """
    since = _began(trial)
    seen: set[int] = set()
    tokens = 0
    for asked in asked_turns(trial.history):
        if asked.turn in seen and asked.life not in trial.again and asked.seq > since:
            tokens += asked.prompt_tokens + asked.completion_tokens
        seen.add(asked.turn)
    return tokens


def deaths_paid_for(trial: Trial) -> int:
    """How many kills a trial had to recover from; a restored crash is one of them."""
    since = _began(trial)
    killed = (e for e in trial.of(LifeEnded) if e.seq > since and e.cause == "fault")
    return sum(end.signal == SIGKILL for end in killed) + (since >= 0)


def _began(trial: Trial) -> int:
    """The crash in which a trial began that was restored; -1 if it was none."""
    restored = (e.seq for e in trial.of(LifeEnded) if e.cause == "restored")
    return max(restored, default=-1)


@dataclass
class _Bill:
    """What was asked for, and what was made of it."""

    case: Case
    asked: dict[int, Asked] = field(default_factory=dict)
    ever: set[int] = field(default_factory=set)
    """The turns that were asked for, also those that were lost since."""
    acted: dict[int, Event] = field(default_factory=dict)
    newest: dict[int, Asked] = field(default_factory=dict)
    """By life: the request whose reply it got last, or waits for."""
    aware: dict[int, int] = field(default_factory=dict)
    """By life: the event at which it could last learn what others had done."""
    told: set[int] = field(default_factory=set)
    kept: set[int] = field(default_factory=set)
    """The turns that no crash takes back."""

    def findings(self) -> Iterator[Finding]:
        trial = self.case.trial
        losses = Losses.of(trial, self.case.scenario)
        script = Script(self.case.scenario)
        heard = heard_from_store(trial)
        for event in trial.history:
            match event:
                case FaultFired():
                    self._lose(event, forgets=any(x.seq == event.seq for x in losses))
                case LifeStarted():
                    self.aware[event.life] = event.seq
                    if losses.found_by(event):
                        self._forget()
                case Crossed() if event.seq in heard:
                    self.aware[event.life] = event.seq
                case Delivered(duplicate=False):
                    self._act(event, script)
                case LifeEnded(cause="itself", ending="parked") if not trial.is_fleet:
                    self._park(event)
                case _ if takes_back(event, self.case.manifest):
                    self._forget(but=self.kept)
                case Asked(problem=None) if event.life not in trial.again:
                    yield from self._ask(event)
            if keeps(event, self.case.manifest):
                self.kept |= set(self.acted)

    def _forget(self, but: Collection[int] = ()) -> None:
        self.asked = {turn: e for turn, e in self.asked.items() if turn in but}
        self.acted = {turn: e for turn, e in self.acted.items() if turn in but}
        self.kept = set(but)

    def _lose(self, fired: FaultFired, *, forgets: bool) -> None:
        """A reply that never came whole is as if it had not been asked for."""
        if forgets:
            self._forget()
        fault, asked = Fault.parse(fired.fault), self.newest.get(fired.life)
        is_lost = fault.ends_its_life or fault.spoils_its_message
        if asked is None or not is_lost or fault.at.operation.service != "llm":
            return
        del self.newest[fired.life]
        if self.asked.get(asked.turn) is asked:
            del self.asked[asked.turn]
            self.acted.pop(asked.turn, None)

    def _act(self, sent: Delivered, script: Script) -> None:
        """A call is known by its group.

        Equal calls of several turns tell nothing, once two of them were asked for.
        """
        group = script.groups.get(identity(sent))
        turns = {call.turn for call in group.calls} if group else set()
        turns &= self.ever
        if len(turns) == 1 and (turn := turns.pop()) in self.asked:
            self.acted.setdefault(turn, sent)

    def _park(self, end: LifeEnded) -> None:
        """A life that asked for a gate or a wait, and then parked, parked for it."""
        turns, asked = self.case.scenario.llm.script, self.newest.get(end.life)
        if asked is None or asked.turn not in self.asked or asked.turn >= len(turns):
            return
        if isinstance(turns[asked.turn], AskTurn | WaitTurn):
            self.acted.setdefault(asked.turn, end)

    def _ask(self, asked: Asked) -> Iterator[Finding]:
        """Later turns say that all before them were acted on.

        Whoever asks without a look at its store does not want to know.
        """
        since = self.acted.get(asked.turn)
        if since is not None and self._knows(asked, since):
            if asked.turn not in self.told:
                yield self._again(asked, since.seq)
            self.told.add(asked.turn)
        self.aware[asked.life] = asked.seq
        for turn in self.asked:
            if turn < asked.turn:
                self.acted.setdefault(turn, asked)
        self.asked.setdefault(asked.turn, asked)
        self.ever.add(asked.turn)
        self.newest[asked.life] = asked

    def _knows(self, asked: Asked, since: Event) -> bool:
        """Whether it was its own doing, or its store could have told it."""
        is_its_own = since.life == asked.life
        return is_its_own or since.seq < self.aware.get(asked.life, asked.seq)

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
