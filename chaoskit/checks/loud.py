"""`loud`: what cannot be recovered fails with a reason; nothing is lost in silence.

A run is not done while the model has more to say. Whoever fails says why. A checkpoint
that cannot be read is no first run. And a call at which life after life dies is given
up, where the agent promises that.
"""

from collections import Counter
from collections.abc import Iterator

from chaoskit.checks.case import Case
from chaoskit.checks.losses import Losses
from chaoskit.checks.script import asked_turns
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import Asked, FaultFired, LifeEnded, Logged
from chaoskit.model.schedule import Fault
from chaoskit.model.services import EFFECTS
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
    yield from _never_gives_up(case)


def _silent_success(case: Case) -> Iterator[Finding]:
    """The model had more to say: how much, the fault-free runs tell."""
    trial, last = case.trial, case.golden.last_turn
    asked = [e.turn for e in asked_turns(trial.history) if e.life not in trial.again]
    if trial.ended.outcome != "done" or last is None or not asked or max(asked) >= last:
        return
    yield Finding(
        PROMISE,
        "loud/no-silent-success",
        f"The run says it is done, and the model was asked up to turn {max(asked)} "
        f"only; without a fault it is asked up to turn {last}. Work that is left is "
        "no success.",
        expected=f"done after turn {last}",
        observed=f"done after turn {max(asked)}",
        events=(trial.ended.seq,),
    )


def _without_a_word(case: Case) -> Iterator[Finding]:
    """Anything at all counts as a reason; what it is worth only a person can tell."""
    trial = case.trial
    if trial.ended.outcome != "failed" or trial.is_fleet:
        return
    ends = [end for end in trial.of(LifeEnded) if end.ending == "failed"]
    if not ends or ends[-1].tail:
        return
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
    """After a torn write a life begins the conversation anew, as if nothing was there.

    Only where a result had come to the model before: until then a first checkpoint may
    rightly be missing.
    """
    trial = case.trial
    if Losses.of(trial, case.scenario):
        return
    torn: FaultFired | None = None
    got_further = False
    for event in trial.history:
        match event:
            case FaultFired() if Fault.parse(event.fault).kind is FaultKind.TEAR:
                is_store = Fault.parse(event.fault).at.operation.service not in _TALK
                torn = event if got_further and is_store else torn
            case Asked(problem=None, turn=0) if torn is not None:
                if event.life > torn.life and not event.carried:
                    yield _begun_anew(case, torn, event)
                    return
            case Asked(problem=None):
                got_further |= bool(event.carried)


_TALK = frozenset({"llm", *EFFECTS})


def _begun_anew(case: Case, torn: FaultFired, asked: Asked) -> Finding:
    return Finding(
        PROMISE,
        "loud/unreadable-kept",
        f"A write was torn ({torn.fault}), and {case.trial.spoken(asked.life)} began "
        "the run anew, as if it were the first: a checkpoint that cannot be read is "
        "not a missing one. It has to be kept, and said.",
        expected="the checkpoint before it, or a run that fails with a reason",
        observed="turn 0, with nothing before it",
        events=(torn.seq, asked.seq),
    )


def _never_gives_up(case: Case) -> Iterator[Finding]:
    limit, trial = case.manifest.contract.max_attempts, case.trial
    died = {end.life for end in trial.of(LifeEnded) if end.ending == "died"}
    fired = [(event, Fault.parse(event.fault)) for event in trial.of(FaultFired)]
    tries = Counter(
        str(fault.at.operation)
        for event, fault in fired
        if event.life in died and fault.at.operation.service in _TALK
    )
    for call, count in tries.items():
        if limit is not None and count > limit:
            last = [e for e, f in fired if str(f.at.operation) == call][-1]
            yield Finding(
                PROMISE,
                "loud/gives-up",
                f"{count} lives died at {call}, and the agent says that it gives a run "
                f"up after {limit}: a call that kills its agent takes everything with "
                "it until somebody gives it up.",
                expected=f"failed after {limit} deaths",
                observed=f"{count} deaths",
                subject=call,
                events=(last.seq,),
            )
