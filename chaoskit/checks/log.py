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

from chaoskit.checks.log_content import discreet
from chaoskit.checks.log_lines import about, finding, meaning, shown
from chaoskit.checks.losses import Losses
from chaoskit.model.history import LifeEnded, LifeStarted, Logged
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import Scenario
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


def check(trial: Trial, scenario: Scenario, manifest: Manifest) -> Iterator[Finding]:
    """Judge the log lines of one trial, over its lives, in their order."""
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
        missing = [name for name in wanted if line.entry.get(name) is None]
        if missing:
            yield finding(
                "log/ids-on-every-line",
                f"A log line of life {line.life} has no {' and no '.join(missing)}: "
                f"{shown(line)}",
                expected=list(wanted),
                observed=missing,
                subject=str(line.entry.get(names.event)),
                lines=[line],
            )
            return
        if line.entry[names.run_id] != trial.run_id:
            yield finding(
                "log/ids-on-every-line",
                f"A log line of life {line.life} names another run: {shown(line)}",
                expected=trial.run_id,
                observed=line.entry[names.run_id],
                subject=str(line.entry.get(names.event)),
                lines=[line],
            )
            return


def _rising(trial: Trial, scenario: Scenario, manifest: Manifest) -> Iterator[Finding]:
    name = manifest.log.checkpoint_id
    newest, losses = _Newest(name), Losses.of(trial, scenario)
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
        before = newest.before(line)
        if before is not None and value < newest.id_of(before):
            if not losses.explain(trial, before.life, line.life):
                yield _fallen(name, before, line)
                return
            newest.lines.clear()
        newest.take(line)


@dataclass
class _Newest:
    """The newest checkpoint that was logged, by life and stream."""

    name: str
    lines: dict[tuple[int, str], Logged] = field(default_factory=dict)

    def id_of(self, line: Logged) -> int:
        return cast(int, line.entry[self.name])

    def before(self, line: Logged) -> Logged | None:
        """The line with the newest checkpoint that surely came earlier.

        Not one of a later life: that took over while this one was paused, and what this
        one still says is of a checkpoint that it knew.
        """
        earlier = (
            each
            for each in self.lines.values()
            if each.life < line.life
            or (each.life == line.life and each.stream == line.stream)
        )
        return max(earlier, key=self.id_of, default=None)

    def take(self, line: Logged) -> None:
        self.lines[line.life, line.stream] = line


def _fallen(name: str, before: Logged, line: Logged) -> Finding:
    was, now = before.entry[name], line.entry[name]
    return finding(
        "log/checkpoint-ids-never-fall",
        f"The {name} fell from {was} (life {before.life}) to {now} (life {line.life}): "
        "a later line must name the newest durable checkpoint.",
        expected=f"at least {was}",
        observed=now,
        lines=[before, line],
    )


def _intents(trial: Trial, manifest: Manifest) -> Iterator[Finding]:
    intents: defaultdict[JsonValue, list[Logged]] = defaultdict(list)
    results: list[Logged] = []
    for line in trial.of(Logged):
        if isinstance(line.entry.get(manifest.log.call), str | int):
            if meaning(line, manifest) == "intent":
                intents[line.entry[manifest.log.call]].append(line)
            elif meaning(line, manifest) == "result":
                results.append(line)
    for result in results:
        call = result.entry[manifest.log.call]
        if not any(_may_precede(intent, result) for intent in intents[call]):
            yield finding(
                "log/intent-before-result",
                f"The log has a result of the call {call!r} (life {result.life}) and "
                "no intent before it.",
                expected="an intent, then its result",
                observed=shown(result),
                subject=str(result.entry.get(manifest.log.event)),
                lines=[result],
            )
            return


def _may_precede(one: Logged, other: Logged) -> bool:
    """Nobody knows how the two streams of a life were interleaved."""
    if one.life != other.life:
        return one.life < other.life
    return one.stream != other.stream or one.seq < other.seq


def _closed(trial: Trial, manifest: Manifest) -> Iterator[Finding]:
    """Starts that a life left open although it ended by itself and was the last."""
    started: Counter[str] = Counter()
    newest: dict[str, Logged] = {}
    last_life = _last_life(trial)
    for line in trial.of(Logged):
        if line.life != last_life:
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
                f"{what or 'A'} start in the log of life {last_life} is closed by no "
                "end, and no later life began.",
                expected="an end for each start",
                observed=shown(newest[what]),
                subject=what,
                lines=[newest[what]],
            )


def _last_life(trial: Trial) -> int | None:
    """The last life before the run ended, if it was the one to end it.

    A run that parks has not ended: what it started is still open.
    """
    lives = [e for e in trial.of(LifeStarted) if e.purpose != "again"]
    ends = {end.life: end for end in trial.of(LifeEnded)}
    if not lives or lives[-1].life not in ends:
        return None
    end = ends[lives[-1].life]
    return end.life if end.ending in ("done", "failed") else None
