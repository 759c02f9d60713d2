"""What the trials that a campaign left behind show: crossings seen, places to strike.

Read from the saved histories, as `chaoskit judge` would.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from chaoskit.checks.takeover import blocked
from chaoskit.model.address import Address, Edge
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import (
    FaultFired,
    LifeContinued,
    LifeEnded,
    LifeStarted,
    from_line,
)
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.trial import Trial

CLEAN = ("baseline-3", "baseline-1")
"""The fault-free run that a campaign goes by; the later one where keys are fresh."""
FAULTS_OF_A_PAIR = 2
NONE = Schedule()


def journal(out: Path) -> tuple[dict[str, Any], ...]:
    """The lines of a campaign's journal; none where no trial was judged."""
    path = out / "trials.jsonl"
    if not path.exists():
        return ()
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines)


def saved(out: Path, name: str, schedule: Schedule = NONE) -> Trial:
    """A trial that a campaign left."""
    path = out / "trials" / name / "history.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    return Trial(name, "", schedule, tuple(map(from_line, lines)))


def clean(out: Path) -> Trial:
    """The fault-free run that a campaign went by."""
    names = [name for name in CLEAN if (out / "trials" / name).is_dir()]
    return saved(out, names[0])


def pairs(lines: Iterable[dict[str, Any]]) -> int:
    """How many schedules of two faults the journal holds."""
    schedules = {_schedule(line) for line in lines}  # one may have been run again
    return sum(len(schedule) == FAULTS_OF_A_PAIR for schedule in schedules)


def kills_in(out: Path, periodic: Collection[str]) -> int:
    """At how many crossings the recoveries of a closure were left, or cut off, killed.

    The world at each was kept, or was known: that is what a kill there leaves. A beat
    counts once, as in a sweep.
    """
    return sum(
        sum(at.nth == 1 or str(at.operation) not in periodic for at in _own(trial))
        for trial in (saved(out, line["trial"]) for line in journal(out))
    )


def _own(trial: Trial) -> Iterator[Address]:
    """The crossings of a trial since the world that it began in, if it was restored."""
    began = (e.seq for e in trial.of(LifeEnded) if e.cause == "restored")
    since = max(began, default=-1)
    return (crossed.at for crossed in trial.crossed if crossed.seq > since)


def takeovers(out: Path) -> int:
    """In how many trials of a campaign a paused life had its run taken over.

    Somebody else went on with it, and not all who tried died of waiting for what the
    paused one held.
    """
    paused = (line for line in journal(out) if line["schedule"])
    trials = (saved(out, line["trial"], _schedule(line)) for line in paused)
    return sum(_took_over(trial) and not blocked(trial) for trial in trials)


def _took_over(trial: Trial) -> bool:
    """Others of a fleet are there all the time; see `blocked` for what they did."""
    fired = (Fault.parse(e.fault).kind for e in trial.of(FaultFired))
    if trial.is_fleet:
        return FaultKind.PAUSE in fired
    paused = False
    for event in trial.history:
        if isinstance(event, FaultFired):
            paused |= Fault.parse(event.fault).kind is FaultKind.PAUSE
        if paused and isinstance(event, LifeStarted):
            return True
        paused &= not isinstance(event, LifeContinued)
    return False


def operations(trial: Trial) -> Iterator[tuple[str, str]]:
    """Service and operation of every message that crossed at both its edges."""
    reached = set(map(str, trial.addresses))
    for at in trial.addresses:
        if at.edge == Edge.BEFORE and str(at.at_edge(Edge.AFTER)) in reached:
            yield at.operation.service, at.operation.op


def inside_replies(trial: Trial) -> Iterator[Schedule]:
    """A kill after each piece of each streamed reply of a fault-free run."""
    for at in trial.addresses:
        pieces = trial.pieces.get(str(at)) or 0
        if at.operation.service == "llm" and at.edge == Edge.AFTER:
            for piece in range(1, pieces):
                place = at.at_edge(Edge.of_part(piece))
                yield Schedule((Fault(FaultKind.KILL, place),))


def chased(out: Path, periodic: Collection[str]) -> Iterator[Schedule]:
    """Each schedule that a campaign tried, and a kill at the crossing after it.

    ``periodic`` are operations that the next run may have at another time, or not.
    """
    for line in journal(out):
        schedule = _schedule(line)
        if len(schedule) == 1:
            at = _next(saved(out, line["trial"], schedule), periodic)
            if at is not None:
                yield schedule.then(Fault(FaultKind.KILL, at))


def _next(trial: Trial, periodic: Collection[str]) -> Address | None:
    """Where the run came first after its last fault had struck."""
    fired = max((event.seq for event in trial.of(FaultFired)), default=None)
    if fired is None:
        return None
    later = (c.at for c in trial.crossed if c.seq > fired)
    return next((at for at in later if str(at.operation) not in periodic), None)


def _schedule(line: dict[str, Any]) -> Schedule:
    return Schedule.parse(line["schedule"])
