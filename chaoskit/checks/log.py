"""`log`: the agent's own log can be followed over all its lives.

Every line carries run, step and checkpoint ids; checkpoint ids never fall, unless the
store forgot what it had acknowledged; a result has its intent before it; each start is
closed by an end or by the next life's start; and no content of a message appears at
info level or above.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue

from chaoskit.checks.case import Case
from chaoskit.checks.log_content import discreet
from chaoskit.checks.log_lines import Order, finding, is_of_no_run, meaning, shown
from chaoskit.checks.log_starts import closed
from chaoskit.checks.losses import Losses
from chaoskit.model.history import Logged
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
    yield from closed(trial, scenario, manifest)
    yield from discreet(case)


def _ids(trial: Trial, manifest: Manifest) -> Iterator[Finding]:
    names = manifest.log
    for line in trial.of(Logged):
        wanted = _ids_of(manifest)
        if is_of_no_run(trial, line, manifest):
            continue
        missing = [name for name in wanted if line.entry.get(name) is None]
        if missing:
            yield finding(
                "log/ids-on-every-line",
                f"A log line of {trial.spoken(line.life)} has no "
                f"{' and no '.join(missing)}: {shown(line)}",
                expected=list(wanted),
                observed=[name for name in wanted if name not in missing],
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
    newest, losses = _Newest(name, Order(trial)), Losses.of(trial, scenario)
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
        if is_of_no_run(trial, line, manifest):
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
    order: Order
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
    order = Order(trial)
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


def _may_precede(one: Logged, other: Logged, order: Order) -> bool:
    """Nobody knows how the two streams of a life, or two lives, were interleaved."""
    if one.life != other.life:
        return not order.surely(other.life, one.life)
    return one.stream != other.stream or one.seq < other.seq
