"""Treadmill: one run that is killed at every crossing, each life a step further.

A life repeats what the one before it did, is killed one crossing later, and so on: the
run creeps on, until a life comes to nothing that is due before it is done. What is due,
`steps` says.

Where a life ends cannot be known in advance: what it does depends on how those before
it ended. A trial for each step, with all the steps before it, would run a number of
lives that grows with the square of the run's length. So it is decided at the gate,
crossing by crossing, in one trial; and what comes of it is a trial like any other, with
a schedule that names each kill and can be replayed.

An agent may say that it gives a run up after so many lives (`max_attempts`), and then
one run may not be enough: what is still due, further runs tread, none of which costs so
many lives before the run has come further.

The idea is that of Restate's tests in which a handler suspends wherever it can.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.steps import roles, trodden
from chaoskit.model.fault_table import AGENT
from chaoskit.model.faults import Wanted
from chaoskit.model.history import FaultFired
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding
from chaoskit.model.visit import Role, Tread, Visit, Visited


class Treadmill:
    """See the module's docstring; one run for each fault that is wanted, or more.

    ``attempts_max``: after so many lives that came to nothing the agent gives up.
    """

    def __init__(
        self, wanted: Sequence[Wanted], attempts_max: int | None = None
    ) -> None:
        self.wanted = tuple(wanted)
        self.attempts_max = attempts_max
        self.walked: list[Trial] = []
        self._struck: defaultdict[Wanted, Counter[Role]] = defaultdict(Counter)
        self._goes_on: set[str] = set()

    def first(self, baseline: Baseline) -> Iterator[Visit]:
        """A run for each of the faults, and for each argument that it may have."""
        self._baseline = baseline
        due = tuple(role for _, role in self._due)
        for kind, argument in self.wanted:
            for each in (argument,) if argument else AGENT[kind].arguments or (None,):
                yield Visit(tread=Tread(Wanted(kind, each), due))

    def after(self, visited: Visited) -> Iterator[Visit]:
        """One more run where the agent gave this one up, and something is still due."""
        trial, tread = visited.trial, visited.visit.tread
        assert tread is not None, "a treadmill asks for nothing else"
        self.walked.append(trial)
        struck = Counter(role for _, role in roles(trial.history, FaultFired))
        self._struck[tread.fault] += struck
        left = trodden(tread, trial.history)
        if struck and left.due and self._may_go_on(tread, trial):
            self._goes_on.add(trial.name)
            row_max = max(1, (self.attempts_max or 1) - 1)
            yield Visit(tread=replace(left, row_max=row_max))

    def _may_go_on(self, tread: Tread, trial: Trial) -> bool:
        """Whether the agent did as it says; let go on in time it must not give up."""
        if tread.row_max is not None:
            return trial.ended.outcome == self._goal
        gave_up = trial.ended.outcome == "failed" != self._goal
        return gave_up and self.attempts_max is not None

    @property
    def _goal(self) -> str:
        return self._baseline.first.ended.outcome

    @property
    def reached(self) -> frozenset[str]:
        """The crossings of the fault-free run that were struck, in whichever life."""
        return frozenset(at for fault in self._struck for at in self._reached_by(fault))

    def _reached_by(self, fault: Wanted) -> Iterator[str]:
        struck = self._struck[fault].copy()
        for address, role in self._due:
            if struck[role]:
                struck[role] -= 1
                yield address

    @cached_property
    def _due(self) -> tuple[tuple[str, Role], ...]:
        targets = set(map(str, self._baseline.targets))
        found = roles(self._baseline.first.history)
        return tuple((str(at), role) for at, role in found if str(at) in targets)

    def why_short(self) -> Iterator[str]:
        """In words: which runs did not come to where the fault-free run did."""
        for trial in self.walked:
            end = trial.ended
            if end.outcome != self._goal and trial.name not in self._goes_on:
                why = f" ({end.reason})" if end.reason else ""
                yield (
                    "the treadmill did not come to the end of the run: after "
                    f"{len(trial.struck)} kills it was {end.outcome}{why}, in trial "
                    f"{trial.name}"
                )


def so_far(trial: Trial, finding: Finding) -> Schedule:
    """The faults of a trial that struck before a finding was complete.

    What came after it has no part in it.
    """
    last = max(finding.events, default=len(trial.history))
    fired = (event.fault for event in trial.of(FaultFired) if event.seq < last)
    return Schedule(tuple(map(Fault.parse, fired)))
