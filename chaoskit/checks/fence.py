"""`fence`: after a takeover the old life changes nothing.

No effect, no checkpoint, no status. A life is old once it was paused and another one
had the run end meanwhile. What it was about to send when it was stopped lands whatever
it does (see `takeover`); what it does once its store could have told it is its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from chaoskit.checks import stored
from chaoskit.checks.case import Case
from chaoskit.checks.losses import Losses
from chaoskit.checks.script import Script
from chaoskit.checks.takeover import sent_unaware
from chaoskit.model.calls import spoken
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import (
    FaultFired,
    Inspected,
    LifeContinued,
    LifeEnded,
    StatusSeen,
)
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding

PROMISE = "fence"
REQUIREMENTS = {
    "fence/no-effect": "A life whose run another has ended does no effect.",
    "fence/no-checkpoint": "A life whose run another has ended writes no checkpoint.",
    "fence/no-status": "A life whose run another has ended leaves its status alone.",
}


@dataclass(frozen=True)
class _Old:
    """A life that goes on after another has ended its run, and where it ends."""

    life: int
    since: int
    until: int


def check(case: Case) -> Iterator[Finding]:
    """Judge what each old life still did; one whose store has forgotten cannot know."""
    if Losses.of(case.trial, case.scenario):
        return
    for old in _old_lives(case.trial):
        yield from _effects(case, old)
        yield from _changes(case.trial, old)


def _old_lives(trial: Trial) -> Iterator[_Old]:
    over = False
    for event in trial.history:
        match event:
            case FaultFired() if Fault.parse(event.fault).kind is FaultKind.PAUSE:
                over = False
            case LifeEnded(ending="done" | "failed") if not trial.is_fleet:
                over = True
            case StatusSeen(status="done" | "failed"):
                over = True
            case LifeContinued() if over:
                later = (e for e in trial.of(LifeEnded) if e.seq > event.seq)
                ends = (e.seq for e in later if e.life == event.life)
                until = next(ends, len(trial.history))
                yield _Old(event.life, event.seq, until)


def _effects(case: Case, old: _Old) -> Iterator[Finding]:
    unaware = sent_unaware(case.trial)
    for _, sent in Script(case.scenario).deliveries(case.trial):
        is_its = sent.life == old.life and old.since < sent.seq < old.until
        if is_its and sent.seq not in unaware and not sent.duplicate:
            call = spoken(sent.tool, sent.args)
            yield Finding(
                PROMISE,
                "fence/no-effect",
                f"{case.trial.spoken(old.life).capitalize()} was stopped, another had "
                f"the run end, and then it sent {call}, although its store could have "
                "told it that the run is no longer its own.",
                expected="no call after a takeover",
                observed=call,
                subject=call,
                events=(old.since, sent.seq),
            )
            return


def _changes(trial: Trial, old: _Old) -> Iterator[Finding]:
    """By what `inspect` shows before it goes on, and after it has ended."""
    looks = [e for e in trial.of(Inspected) if not e.problem]
    before = [e for e in looks if e.seq < old.since]
    after = [e for e in looks if e.seq > old.until]
    if not before or not after:
        return
    was, now = before[-1], after[0]
    if was.status != now.status and None not in (was.status, now.status):
        yield _changed(trial, old, "no-status", "status", was, now)
    elif was.checkpoint_id != now.checkpoint_id or _rewritten(was, now):
        yield _changed(trial, old, "no-checkpoint", "checkpoint_id", was, now)


def _rewritten(was: Inspected, now: Inspected) -> bool:
    """Whether what was said differs; ids and times may be new at each reading."""
    one, other = stored.said(was.transcript), stored.said(now.transcript)
    return None not in (one, other) and one != other


def _changed(
    trial: Trial, old: _Old, kind: str, field: str, was: Inspected, now: Inspected
) -> Finding:
    one, other = getattr(was, field), getattr(now, field)
    what = field.replace("_", " ")
    change = f"its {what} {one!r}, and now it is {other!r}"
    if one == other:
        change = f"its {what} {one!r}, and its transcript is another one now"
    return Finding(
        PROMISE,
        f"fence/{kind}",
        f"{trial.spoken(old.life).capitalize()} was stopped, and another had the run "
        f"end with {change}: a life that has lost its run must not write to it.",
        expected=one,
        observed=other,
        events=(was.seq, now.seq),
    )
