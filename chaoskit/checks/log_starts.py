"""`log/starts-are-closed`: a start is closed by an end or by the next life.

Of processes that run side by side the next life is the one that goes on with the run.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from chaoskit.checks.log_lines import (
    Order,
    about,
    finding,
    is_of_no_run,
    meaning,
    shown,
)
from chaoskit.checks.losses import Losses
from chaoskit.model.fault_table import AGENT
from chaoskit.model.history import (
    Crossed,
    FaultFired,
    LifeContinued,
    LifeEnded,
    LifeStarted,
    Logged,
)
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding


def closed(trial: Trial, scenario: Scenario, manifest: Manifest) -> Iterator[Finding]:
    """Starts that a life left open although it ended by itself and was the last."""
    lines = [e for e in trial.of(Logged) if not is_of_no_run(trial, e, manifest)]
    forgets = bool(Losses.of(trial, scenario))
    heirs = _Heirs(trial, manifest, lines, Order(trial), forgets)
    for life in _last_lives(trial):
        own = (line for line in lines if line.life == life)
        for what, start in _left_open(own, manifest).items():
            if not heirs.have_taken_over(what, start):
                yield _open(trial, what, start)


def _left_open(lines: Iterable[Logged], manifest: Manifest) -> dict[str, Logged]:
    """The newest of the starts that no end closes, by what they are about."""
    turns: defaultdict[str, list[Logged]] = defaultdict(list)
    for line in lines:
        if meaning(line, manifest) in ("start", "end"):
            turns[about(line, manifest)].append(line)
    return {
        what: [each for each in turn if meaning(each, manifest) == "start"][-1]
        for what, turn in turns.items()
        if _balance(turn, manifest) > 0
    }


def _balance(turns: list[Logged], manifest: Manifest) -> int:
    """How many starts are open: an end closes one that came before it.

    Nobody knows how the two streams of a life were interleaved: there, each end counts.
    """
    is_in_order = len({line.stream for line in turns}) == 1
    count = 0
    for line in turns:
        count += 1 if meaning(line, manifest) == "start" else -1
        count = max(0, count) if is_in_order else count
    return count


@dataclass(frozen=True)
class _Heirs:
    """The lines of other processes, by which they show that they go on with the run."""

    trial: Trial
    manifest: Manifest
    lines: list[Logged]
    order: Order
    forgets: bool
    """Whether the store forgot, so that the number of a checkpoint may fall."""

    def have_taken_over(self, what: str, start: Logged) -> bool:
        """Whether one resumes the run later, or begins or ends just that itself."""
        return self.trial.is_fleet and any(
            self._goes_on(line, what) and self._may_be_later(line, start)
            for line in self.lines
            if line.life != start.life and line.life not in self.trial.again
        )

    def _goes_on(self, line: Logged, what: str) -> bool:
        kind = meaning(line, self.manifest)
        is_the_same = kind in ("start", "end") and about(line, self.manifest) == what
        return is_the_same or kind == "resume"

    def _may_be_later(self, line: Logged, start: Logged) -> bool:
        """By the lives, and by the checkpoints that they name, which never fall."""
        name = self.manifest.log.checkpoint_id
        one, other = start.entry.get(name), line.entry.get(name)
        has_fallen = isinstance(one, int) and isinstance(other, int) and other < one
        if has_fallen and not self.forgets:
            return False
        return not self.order.surely(line.life, start.life)


def _open(trial: Trial, what: str, start: Logged) -> Finding:
    return finding(
        "log/starts-are-closed",
        f"{what or 'A'} start in the log of {trial.spoken(start.life)} is closed by no "
        "end, and no life after it went on with the run. Its end is an event of the "
        "same name with `end` in the place of `start`.",
        expected="an end for each start",
        observed=shown(start),
        subject=what,
        lines=[start],
    )


def _last_lives(trial: Trial) -> list[int]:
    """The last life before the run ended, if it was the one to end it.

    A run that parks has not ended: what it started is still open. Of many processes it
    is the last life of each, but for one that was paused, as others had gone on, one
    that the signal ended, which is how it was stopped, and one that was stopped before
    it could learn what had become of its last message.
    """
    lives = [e for e in trial.of(LifeStarted) if e.purpose != "again"]
    last = {start.process: start.life for start in lives}
    ends = {end.life: end for end in trial.of(LifeEnded)}
    excused = {event.life for event in trial.of(LifeContinued)} | _unanswered(trial)
    if trial.is_fleet and trial.ended.outcome not in ("done", "failed"):
        return []
    return [
        life
        for life in last.values()
        if life in ends
        and ends[life].ending in ("done", "failed")
        and not (trial.is_fleet and (life in excused or ends[life].code is None))
    ]


def _unanswered(trial: Trial) -> set[int]:
    """The lives whose last message was struck by a fault of the service."""
    newest = {e.life: e for e in trial.history if isinstance(e, Crossed | FaultFired)}
    return {
        life
        for life, event in newest.items()
        if isinstance(event, FaultFired) and Fault.parse(event.fault).kind not in AGENT
    }
