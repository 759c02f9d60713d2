"""`store`: the next life reads back the newest durable checkpoint of its run, whole.

Seen by the agent's own command `inspect`, which is run after each kill and before the
next life could heal anything, and at the end. What a store lost by a fault is not held
against the agent, nor what it had not yet called durable.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from chaoskit.checks.case import Case
from chaoskit.checks.losses import Losses
from chaoskit.model.history import Inspected, Logged
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
    if Losses.of(case.trial, case.scenario):
        return
    known, told = _Known(), set[str]()
    for event in case.trial.history:
        if isinstance(event, Logged):
            known.log(event, event.entry.get(case.manifest.log.checkpoint_id))
        if isinstance(event, Inspected):
            for finding in _looked(case, event, known):
                if finding.requirement not in told:
                    told.add(finding.requirement)
                    yield finding
            known.look(event)


@dataclass
class _Known:
    """The newest checkpoint that was seen, and what the last look had shown."""

    newest: int = 0
    seq: int = 0
    last: Inspected | None = None
    by_id: dict[int, Inspected] = field(default_factory=dict)

    def log(self, line: Logged, number: JsonValue) -> None:
        if isinstance(number, int) and number > self.newest:
            self.newest, self.seq = number, line.seq

    def look(self, seen: Inspected) -> None:
        if seen.problem:
            return
        self.last = seen
        if (number := seen.checkpoint_id) is not None:
            self.by_id[number] = seen
            if number > self.newest:
                self.newest, self.seq = number, seen.seq


def _looked(case: Case, seen: Inspected, known: _Known) -> Iterator[Finding]:
    number = seen.checkpoint_id
    if seen.problem:
        if known.newest or known.last is not None:
            yield _unreadable(seen, known)
        return
    if number is not None and number < known.newest:
        yield _older(seen, known, number)
        return
    same = known.by_id.get(number) if number is not None else None
    if same is not None and number and _differ(same.transcript, seen.transcript):
        yield _one_id_for_two(seen, same)
    elif known.last is not None and _is_cut(known.last.transcript, seen.transcript):
        yield _cut(seen, known.last)


def _differ(one: JsonValue, other: JsonValue) -> bool:
    return one is not None and other is not None and one != other


def _is_cut(before: JsonValue, now: JsonValue) -> bool:
    """Whether the end of a conversation is gone; one that was rewritten is not."""
    if not isinstance(before, list) or not isinstance(now, list):
        return False
    return len(now) < len(before) and before[: len(now)] == now


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
