"""`loud`: what cannot be recovered fails with a reason; nothing is lost in silence.

A run is not done while the model has more to say. Whoever fails says why. A checkpoint
that cannot be read is no first run. And a call at which life after life dies is given
up, where the agent promises that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from chaoskit.checks.case import Case
from chaoskit.checks.doubt import answered
from chaoskit.checks.given_up import never_gives_up
from chaoskit.checks.losses import Losses
from chaoskit.checks.script import Script
from chaoskit.checks.setbacks import keeps, takes_back
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import (
    Asked,
    Event,
    FaultFired,
    Inspected,
    LifeEnded,
    Logged,
)
from chaoskit.model.manifest import Manifest
from chaoskit.model.schedule import Fault
from chaoskit.model.services import STORES
from chaoskit.model.verdict import Finding

PROMISE = "loud"
REQUIREMENTS = {
    "loud/no-silent-success": "No run says it is done while work is left.",
    "loud/says-why": "A run that fails says why, on standard error.",
    "loud/unreadable-kept": (
        "A checkpoint that cannot be read is not taken for a first run."
    ),
    "loud/gives-up": (
        "After `max_attempts` deaths at one call the run fails, where that is promised."
    ),
}


def check(case: Case) -> Iterator[Finding]:
    """Judge what one trial kept quiet about."""
    yield from _silent_success(case)
    yield from _without_a_word(case)
    yield from _taken_for_a_first_run(case)
    yield from never_gives_up(case)


def _silent_success(case: Case) -> Iterator[Finding]:
    """The model had more to say: how much, the fault-free runs tell.

    A reply that was lost on its way has said nothing. Whoever asks once more past the
    end of the script need not do that every time.
    """
    trial, usual = case.trial, case.golden.last_turn
    if trial.ended.outcome != "done" or usual is None:
        return
    answers = answered(trial, Script(case.scenario))
    heard = [asked.turn for asked in answers if asked.life not in trial.again]
    reached = max(heard, default=-1)
    last = min(usual, len(case.scenario.llm.script) - 1)
    if reached >= last:
        return
    how_far = f"was heard up to turn {reached} only" if heard else "was never heard"
    yield Finding(
        PROMISE,
        "loud/no-silent-success",
        f"The run says it is done, and the model {how_far}; without a fault it is "
        f"heard up to turn {last}. Work that is left is no success.",
        expected=f"done after turn {last}",
        observed=f"done after turn {reached}" if heard else "done",
        events=(trial.ended.seq,),
    )


def _without_a_word(case: Case) -> Iterator[Finding]:
    """Anything at all counts as a reason; what it is worth only a person can tell."""
    trial = case.trial
    if trial.ended.outcome != "failed" or trial.is_fleet:
        return
    ends = [end for end in trial.of(LifeEnded) if end.ending == "failed"]
    if not ends or ends[-1].tail or ends[-1].cause == "fault":
        return  # of a life that a fault ended no words are kept
    logged = any(line.life == ends[-1].life for line in trial.of(Logged))
    if not logged:
        yield Finding(
            PROMISE,
            "loud/says-why",
            f"Life {ends[-1].life} gave the run up (exit code {ends[-1].code}) and "
            "printed nothing: whoever has to repair it needs a reason.",
            expected="a reason on standard error",
            observed="nothing",
            events=(ends[-1].seq,),
        )


def _taken_for_a_first_run(case: Case) -> Iterator[Finding]:
    """A life begins the conversation anew, as if nothing was there.

    Only where a result had come to the model before: until then a first checkpoint may
    rightly be missing.
    """
    trial, known = case.trial, _Known(case.manifest)
    if Losses.of(trial, case.scenario):
        return
    for event in trial.history:
        known.take(event)
        match event:
            case Asked(problem=None, turn=0) if not event.carried:
                met = (fired for fired in known.damage if _meets(fired, event, known))
                if (fired := next(met, None)) is not None:
                    yield _begun_anew(case, fired, event)
                    return


@dataclass
class _Known:
    """What was known of a run: the results that the model had, and checkpoints.

    Where a crash may take the run back to its beginning, nothing has to be there.
    """

    manifest: Manifest
    progress: bool = False
    kept: bool = False
    """Whether there is something that no crash takes back."""
    durable: bool = False
    further: set[int] = field(default_factory=set)
    """The lives that have shown that they know of results."""
    damage: list[FaultFired] = field(default_factory=list)

    def take(self, event: Event) -> None:
        if takes_back(event, self.manifest) and not self.kept:
            self.progress = False
            self.damage.clear()
        self.kept |= self.progress and keeps(event, self.manifest)
        match event:
            case FaultFired() if self.progress and _damages(Fault.parse(event.fault)):
                self.damage.append(event)
            case Asked(problem=None) if event.carried:
                self.progress = True
                self.further.add(event.life)
            case Logged():
                self._see(event.entry.get(self.manifest.log.checkpoint_id))
            case Inspected():
                self._see(event.checkpoint_id)

    def _see(self, number: JsonValue) -> None:
        self.durable |= isinstance(number, int) and number > 0


def _damages(fault: Fault) -> bool:
    """Whether the store, or what is read of it, is not whole because of a fault."""
    is_torn = fault.kind is FaultKind.TEAR
    return fault.at.operation.service in STORES and (
        is_torn or fault.spoils_its_message
    )


def _meets(fired: FaultFired, asked: Asked, known: _Known) -> bool:
    """Whether a life that begins anew had to do with what a fault had damaged.

    A write to a file that was torn is found by those that come after. Any other message
    is spoilt for its own life alone, and then it must be sure that there was something
    to read.
    """
    if Fault.parse(fired.fault).ends_its_life:
        return asked.life > fired.life
    is_its_own = asked.life == fired.life and asked.life not in known.further
    return is_its_own and known.durable


def _begun_anew(case: Case, fired: FaultFired, asked: Asked) -> Finding:
    is_torn = Fault.parse(fired.fault).kind is FaultKind.TEAR
    what = "was torn" if is_torn else "was not answered well"
    return Finding(
        PROMISE,
        "loud/unreadable-kept",
        f"A message to the store {what} ({fired.fault}), and "
        f"{case.trial.spoken(asked.life)} began the run anew, as if it were the first: "
        "a checkpoint that cannot be read is not a missing one. It has to be kept, and "
        "said.",
        expected="the checkpoint before it, or a run that fails with a reason",
        observed="turn 0, with nothing before it",
        events=(fired.seq, asked.seq),
    )
