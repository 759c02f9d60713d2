"""`log`: the agent's own log can be followed over all its lives.

Every line carries run, step and checkpoint ids; checkpoint ids never fall, unless the
store forgot what it had acknowledged; a result has its intent before it; each start is
closed by an end or by the next life's start; and no content of a message appears at
info level or above.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue

from chaoskit.checks.case import Case
from chaoskit.checks.log_content import discreet
from chaoskit.checks.log_lines import about, finding, meaning, shown
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


def silent(trial: Trial, manifest: Manifest) -> str | None:
    """Why this trial's log is not judged, or None."""
    if any(_is_log(line.entry, manifest) for line in trial.of(Logged)):
        return None
    return (
        f"the agent writes no JSON log lines with {manifest.log.event!r} and one of "
        f"{', '.join(map(repr, _ids_of(manifest)))}"
    )


def _is_log(entry: dict[str, JsonValue], manifest: Manifest) -> bool:
    """Libraries log events too; an id shows that a line is meant to be ours."""
    has_id = any(name in entry for name in _ids_of(manifest))
    return has_id and manifest.log.event in entry


def _ids_of(manifest: Manifest) -> tuple[str, str, str]:
    names = manifest.log
    return names.run_id, names.step, names.checkpoint_id


def _is_of_no_run(trial: Trial, line: Logged, manifest: Manifest) -> bool:
    """A worker has more to say than of this run."""
    return trial.is_fleet and line.entry.get(manifest.log.run_id) is None


REQUIREMENTS = {
    "log/ids-on-every-line": "Every line carries the ids of run, step and checkpoint.",
    "log/checkpoint-ids-are-numbers": "Checkpoint ids are whole numbers.",
    "log/checkpoint-ids-never-fall": "Checkpoint ids never fall.",
    "log/intent-before-result": "A result has its intent before it.",
    "log/starts-are-closed": "A start is closed by an end or by the next life.",
    "log/no-content": (
        "No content of a message longer than 24 characters appears at info or above."
    ),
}


def check(case: Case) -> Iterator[Finding]:
    """Judge the log lines of one trial, over its lives, in their order."""
    trial, scenario, manifest = case.trial, case.scenario, case.manifest
    if silent(trial, manifest):
        return
    yield from _ids(trial, manifest)
    yield from _rising(trial, scenario, manifest)
    yield from _intents(trial, manifest)
    yield from _closed(trial, manifest)
    yield from discreet(trial, scenario, manifest)


def _ids(trial: Trial, manifest: Manifest) -> Iterator[Finding]:
    names = manifest.log
    for line in trial.of(Logged):
        wanted = _ids_of(manifest)
        if _is_of_no_run(trial, line, manifest):
            continue
        missing = [name for name in wanted if line.entry.get(name) is None]
        if missing:
            yield finding(
                "log/ids-on-every-line",
                f"A log line of {trial.spoken(line.life)} has no "
                f"{' and no '.join(missing)}: {shown(line)}",
                expected=list(wanted),
                observed=missing,
                subject=str(line.entry.get(names.event)),
                lines=[line],
            )
            return
        if line.entry[names.run_id] != trial.run_id:
            yield finding(
                "log/ids-on-every-line",
                f"A log line of {trial.spoken(line.life)} names another run: "
                f"{shown(line)}",
                expected=trial.run_id,
                observed=line.entry[names.run_id],
                subject=str(line.entry.get(names.event)),
                lines=[line],
            )
            return


def _rising(trial: Trial, scenario: Scenario, manifest: Manifest) -> Iterator[Finding]:
    name = manifest.log.checkpoint_id
    newest, losses = _Newest(name, _Order(trial)), Losses.of(trial, scenario)
    for line in trial.of(Logged):
        value = line.entry.get(name)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            yield finding(
                "log/checkpoint-ids-are-numbers",
                f"A log line has the {name} {value!r}: it must be a whole number, "
                "0 before the first checkpoint.",
                expected="a whole number",
                observed=value,
                lines=[line],
            )
            return
        if _is_of_no_run(trial, line, manifest):
            continue
        before = newest.before(line)
        if before is not None and value < newest.id_of(before):
            if not losses.explain(trial, before.life, line.life):
                yield _fallen(trial, name, before, line)
                return
            newest.lines.clear()
        newest.take(line)


@dataclass
class _Newest:
    """The newest checkpoint that was logged, by life and stream."""

    name: str
    order: "_Order"
    lines: dict[tuple[int, str], Logged] = field(default_factory=dict)

    def id_of(self, line: Logged) -> int:
        return cast(int, line.entry[self.name])

    def before(self, line: Logged) -> Logged | None:
        """The line with the newest checkpoint that surely came earlier.

        Not one of a later life: that took over while this one was paused, and what this
        one still says is of a checkpoint that it knew. So it is where lives run side by
        side.
        """
        earlier = (
            each
            for each in self.lines.values()
            if (each.life == line.life and each.stream == line.stream)
            or self.order.surely(each.life, line.life)
        )
        return max(earlier, key=self.id_of, default=None)

    def take(self, line: Logged) -> None:
        self.lines[line.life, line.stream] = line


class _Order:
    """Which of two lives was surely first: of those side by side none was."""

    def __init__(self, trial: Trial) -> None:
        self._is_fleet = trial.is_fleet
        self._began = {start.life: start.seq for start in trial.of(LifeStarted)}
        self._ended = {end.life: end.seq for end in trial.of(LifeEnded)}

    def surely(self, one: int, other: int) -> bool:
        """Whether all that one life wrote came before all that the other did."""
        if not self._is_fleet:
            return one < other
        never = float("inf")
        return self._ended.get(one, never) < self._began.get(other, -1)


def _fallen(trial: Trial, name: str, before: Logged, line: Logged) -> Finding:
    was, now = before.entry[name], line.entry[name]
    one, other = trial.spoken(before.life), trial.spoken(line.life)
    return finding(
        "log/checkpoint-ids-never-fall",
        f"The {name} fell from {was} in {one} to {now} in {other}: "
        "a later line must name the newest durable checkpoint.",
        expected=f"at least {was}",
        observed=now,
        lines=[before, line],
    )


def _intents(trial: Trial, manifest: Manifest) -> Iterator[Finding]:
    intents: defaultdict[JsonValue, list[Logged]] = defaultdict(list)
    results: list[Logged] = []
    order = _Order(trial)
    for line in trial.of(Logged):
        if isinstance(line.entry.get(manifest.log.call), str | int):
            if meaning(line, manifest) == "intent":
                intents[line.entry[manifest.log.call]].append(line)
            elif meaning(line, manifest) == "result":
                results.append(line)
    for result in results:
        call = result.entry[manifest.log.call]
        if not any(_may_precede(intent, result, order) for intent in intents[call]):
            yield finding(
                "log/intent-before-result",
                f"The log has a result of the call {call!r} "
                f"({trial.spoken(result.life)}) and no intent before it.",
                expected="an intent, then its result",
                observed=shown(result),
                subject=str(result.entry.get(manifest.log.event)),
                lines=[result],
            )
            return


def _may_precede(one: Logged, other: Logged, order: _Order) -> bool:
    """Nobody knows how the two streams of a life, or two lives, were interleaved."""
    if one.life != other.life:
        return not order.surely(other.life, one.life)
    return one.stream != other.stream or one.seq < other.seq


def _closed(trial: Trial, manifest: Manifest) -> Iterator[Finding]:
    """Starts that a life left open although it ended by itself and was the last."""
    for life in _last_lives(trial):
        yield from _left_open(trial, manifest, life)


def _left_open(trial: Trial, manifest: Manifest, life: int) -> Iterator[Finding]:
    started: Counter[str] = Counter()
    newest: dict[str, Logged] = {}
    for line in trial.of(Logged):
        if line.life != life or _is_of_no_run(trial, line, manifest):
            continue
        kind, what = meaning(line, manifest), about(line, manifest)
        if kind == "start":
            started[what] += 1
            newest[what] = line
        elif kind == "end":
            started[what] = max(0, started[what] - 1)
    for what, count in started.items():
        if count:
            yield finding(
                "log/starts-are-closed",
                f"{what or 'A'} start in the log of {trial.spoken(life)} is closed by "
                "no end, and no later life began.",
                expected="an end for each start",
                observed=shown(newest[what]),
                subject=what,
                lines=[newest[what]],
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
