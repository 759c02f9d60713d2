"""`store`: the next life reads back the newest durable checkpoint of its run, whole.

Seen by the agent's own command `inspect`, which is run after each kill and before the
next life could heal anything, and at the end. What a store lost by a fault is not held
against the agent, nor what it had not yet called durable: from the first loss on
nothing is judged, and a loss of power takes what was only seen, not what was logged.
Instructions to the model may be put together anew at each look, and a run that is done
may clear its whole conversation with a new checkpoint.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

from pydantic import JsonValue

from chaoskit.checks import stored
from chaoskit.checks.case import Case
from chaoskit.checks.losses import Losses
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import Event, FaultFired, Inspected, LifeEnded, Logged
from chaoskit.model.manifest import Manifest
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding

PROMISE = "store"
REQUIREMENTS = {
    "store/readable": "What is stored can be read back at any moment.",
    "store/newest": "What is read back is the newest durable checkpoint.",
    "store/ids-rise": "A checkpoint id stands for one checkpoint: ids rise with each.",
    "store/whole": "What is read back holds all that the checkpoint before it held.",
}


def check(case: Case) -> Iterator[Finding]:
    """Judge each look at the store, against all that was known to be there."""
    losses = Losses.of(case.trial, case.scenario)
    first = min((loss.seq for loss in losses), default=inf)
    known, told = _Known(case), set[str]()
    for event in case.trial.history:
        if event.seq >= first:
            return
        if isinstance(event, Inspected):
            for finding in _looked(event, known):
                if finding.requirement not in told:
                    told.add(finding.requirement)
                    yield finding
        known.take(event)


def unshown(trial: Trial) -> str | None:
    """Why `inspect` showed nothing of a fault-free run that is over, if so."""
    last = [seen for seen in trial.of(Inspected) if seen.when == "end"]
    return last[-1].problem or None if last else None


def unseen(trial: Trial, manifest: Manifest) -> str | None:
    """Why nothing of a run was seen in the store, if so."""
    if manifest.inspect is None:
        return "the manifest names no `inspect`, which shows what is stored"
    looks = [seen for seen in trial.of(Inspected) if not seen.problem]
    if looks and all(seen.checkpoint_id is None for seen in looks):
        return "`inspect` never named a checkpoint: its `checkpoint_id` was always null"
    return None


@dataclass
class _Known:
    """The newest checkpoint that was logged or seen, and what looks have shown."""

    case: Case
    newest: int = 0
    seq: int = 0
    last: Inspected | None = None
    by_id: dict[int, Inspected] = field(default_factory=dict)
    logged: tuple[int, int] = 0, 0
    paused: set[int] = field(default_factory=set)

    def take(self, event: Event) -> None:
        match event:
            case Logged():
                self._log(event)
            case Inspected(problem=""):
                self._look(event)
            case LifeEnded():
                self.paused.discard(event.life)
            case FaultFired():
                self._suffer(Fault.parse(event.fault).kind, event.life)

    def _log(self, line: Logged) -> None:
        names = self.case.manifest.log
        if line.entry.get(names.run_id) != self.case.trial.run_id:
            return
        number = line.entry.get(names.checkpoint_id)
        if isinstance(number, int) and not isinstance(number, bool):
            self.logged = max(self.logged, (number, line.seq))
            self._is_there(number, line.seq)

    def _look(self, seen: Inspected) -> None:
        self.last = seen
        if (number := seen.checkpoint_id) is not None:
            self.by_id[number] = seen
            self._is_there(number, seen.seq)

    def number_in(self, seen: Inspected) -> int | None:
        """The checkpoint that is read back: 0 where a death has left none at all.

        Only of an agent whose looks name their checkpoints; others print no number.
        """
        nothing = seen.checkpoint_id is None and not seen.transcript
        if nothing and seen.when == "death" and self.names_them:
            return 0
        return seen.checkpoint_id

    @cached_property
    def names_them(self) -> bool:
        """Whether any look of the trial named a checkpoint."""
        looks = self.case.trial.of(Inspected)
        return any(seen.checkpoint_id is not None for seen in looks)

    def _is_there(self, number: int, seq: int) -> None:
        if number > self.newest:
            self.newest, self.seq = number, seq

    def _suffer(self, kind: FaultKind, life: int) -> None:
        if kind is FaultKind.PAUSE:
            self.paused.add(life)
        elif kind is FaultKind.POWERLOSS:
            self.newest, self.seq = self.logged
            self.last = None
            self.by_id.clear()


def _looked(seen: Inspected, known: _Known) -> Iterator[Finding]:
    number = known.number_in(seen)
    if seen.problem:
        # A life that is paused may hold a lock.
        if (known.newest or known.last is not None) and not known.paused:
            yield _unreadable(seen, known)
    elif number is not None and number < known.newest:
        yield from _fallen(seen, known, number)
    else:
        yield from _same(seen, known.by_id.get(number or 0))
        yield from _less(seen, known)


def _fallen(seen: Inspected, known: _Known, number: int) -> Iterator[Finding]:
    """An older checkpoint, or a newer one under a number that says otherwise."""
    best = known.by_id.get(known.newest)
    if best is not None and _is_more(seen.transcript, best.transcript):
        yield _misnumbered(seen, best, number)
    else:
        yield _older(seen, known, number)


def _same(seen: Inspected, same: Inspected | None) -> Iterator[Finding]:
    if same is not None and stored.differs(same.transcript, seen.transcript):
        yield _one_id_for_two(seen, same)


def _less(seen: Inspected, known: _Known) -> Iterator[Finding]:
    if (last := known.last) is None:
        return
    same = seen.checkpoint_id == last.checkpoint_id is not None
    if stored.is_shorter(last.transcript, seen.transcript, same=same):
        # A new checkpoint may rightly begin a turn anew that was not over.
        may_drop = stored.ends_open(last.transcript) or _is_cleared(seen, known)
        if same or not may_drop:
            yield _cut(seen, last)
    elif call := stored.lost_result(last.transcript, seen.transcript):
        yield _holed(seen, last, call)


def _is_cleared(seen: Inspected, known: _Known) -> bool:
    """Whether the run is done, and its conversation no longer needed."""
    trial = known.case.trial
    is_done = seen.status == "done" or (
        seen.when == "end" and trial.ended.outcome == "done"
    )
    return is_done and seen.transcript == []


def _is_more(now: JsonValue, before: JsonValue) -> bool:
    return stored.goes_on(before, now) and not stored.goes_on(now, before)


def _unreadable(seen: Inspected, known: _Known) -> Finding:
    return Finding(
        PROMISE,
        "store/readable",
        f"After life {seen.after} the store could not be read: {seen.problem}. "
        f"Checkpoint {known.newest} was there before; a write must leave the old one "
        "or the new one, never half of it.",
        expected=f"checkpoint {known.newest} or a newer one",
        observed=seen.problem,
        events=(known.seq, seen.seq),
    )


def _older(seen: Inspected, known: _Known, number: int) -> Finding:
    return Finding(
        PROMISE,
        "store/newest",
        f"After life {seen.after} the next one would read back checkpoint {number}, "
        f"and {known.newest} was durable (event {known.seq}).",
        expected=f"checkpoint {known.newest} or a newer one",
        observed=number,
        events=(known.seq, seen.seq),
    )


def _misnumbered(seen: Inspected, best: Inspected, number: int) -> Finding:
    return Finding(
        PROMISE,
        "store/ids-rise",
        f"After life {seen.after} the newest checkpoint has the id {number}, and one "
        f"that came before it, and held less, had {best.checkpoint_id} (event "
        f"{best.seq}): ids must rise over lives, so the last one must be stored and "
        "counted on from.",
        expected=f"an id above {best.checkpoint_id}",
        observed=number,
        events=(best.seq, seen.seq),
    )


def _one_id_for_two(seen: Inspected, same: Inspected) -> Finding:
    return Finding(
        PROMISE,
        "store/ids-rise",
        f"Checkpoint {seen.checkpoint_id} was seen twice, with different content "
        f"(events {same.seq} and {seen.seq}): each checkpoint has an id of its own, "
        "else nobody can tell which of two is newer.",
        expected="an id of its own for each checkpoint",
        observed=seen.checkpoint_id,
        events=(same.seq, seen.seq),
    )


def _cut(seen: Inspected, last: Inspected) -> Finding:
    assert isinstance(seen.transcript, list)
    assert isinstance(last.transcript, list)
    return Finding(
        PROMISE,
        "store/whole",
        f"After life {seen.after} the transcript that is read back has "
        f"{len(seen.transcript)} entries, where {len(last.transcript)} were there "
        "before: its end is gone.",
        expected=f"at least {len(last.transcript)} entries",
        observed=len(seen.transcript),
        events=(last.seq, seen.seq),
    )


def _holed(seen: Inspected, last: Inspected, call: str) -> Finding:
    return Finding(
        PROMISE,
        "store/whole",
        f"After life {seen.after} the result of the call {call!r} is gone from what is "
        "read back, and the call is still there.",
        expected=f"the result of the call {call!r}",
        observed="the call alone",
        subject=call,
        events=(last.seq, seen.seq),
    )
