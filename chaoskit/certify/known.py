"""Known failures: still run, never excused from the level, and gone once they pass.

The file is a list. Each entry says which requirement a scenario is known to break, and
why that is lived with for now. It is for as much as it names: `level` is the lowest
that the failure keeps from being reached, where that is a later one than the
requirement's own, and what breaks it below is new; `subject` is the one call, wait or
line that it is about.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaoskit.certify.evidence import Evidence
from chaoskit.certify.revision import Revision
from chaoskit.certify.stops import Stop, broken
from chaoskit.loading.nodes import Node
from chaoskit.loading.text import read_text
from chaoskit.loading.yaml_source import parse
from chaoskit.model.errors import InputError, Problem, did_you_mean, listed

KEYS = ("requirement", "scenario", "reason", "level", "subject")
NEEDED = KEYS[:3]
_OR_NONE = "text, in quotes where it looks like a number; or leave `{}` out"
_EXAMPLE = "{requirement: effects/once-across-kill, scenario: pay, reason: ...}"


@dataclass(frozen=True)
class Known:
    """A requirement that a scenario is known to break.

    ``stands_at`` are the levels and tags that this keeps from being reached.
    """

    requirement: str
    scenario: str
    reason: str
    level: str
    subject: str | None = None
    stands_at: tuple[str, ...] = ()

    def covers(self, stop: Stop) -> bool:
        """Whether it is the failure that a stop tells of."""
        return (
            (self.requirement, self.scenario) == (stop.requirement, stop.scenario)
            and stop.level in self.stands_at
            and self.subject in (None, stop.subject)
        )


def load_known(
    path: Path, revision: Revision, scenarios: Sequence[str]
) -> tuple[Known, ...]:
    """Read the file of known failures.

    Raises:
        InputError: every problem that it has.
    """
    document = parse(str(path), read_text(path))
    root = document.root
    problems = list(document.problems)
    if not isinstance(root.value, tuple):
        problems.append(root.problem("a list of known failures", f"as in - {_EXAMPLE}"))
    for entry in root.items:
        problems += _flaws(entry, revision, scenarios)
    if problems:
        raise InputError(tuple(problems))
    return tuple(_known(entry, revision) for entry in root.items)


def _flaws(
    entry: Node, revision: Revision, scenarios: Sequence[str]
) -> Iterator[Problem]:
    for key, node in entry.entries.items():
        if key not in KEYS:
            expected = f"one of {', '.join(KEYS)}"
            yield node.key_problem(key, expected, did_you_mean(key, KEYS))
    choices = {
        "requirement": tuple(revision.requirements),
        "scenario": tuple(scenarios),
        "level": revision.order,
    }
    for key in KEYS:
        if key in entry.entries:
            yield from _flaw(key, entry.entries[key], choices.get(key, ()))
        elif key in NEEDED:
            yield entry.problem(f"`{key}`, as in {_EXAMPLE}")


def _flaw(key: str, given: Node, names: Sequence[str]) -> Iterator[Problem]:
    """What is wrong with the value of a key; ``names`` are all that it may be."""
    expected = f"one of {listed(names)}" if names else f"`{key}`, as in {_EXAMPLE}"
    if not isinstance(given.value, str) or not given.value.strip():
        yield given.problem(expected, None if key in NEEDED else _OR_NONE.format(key))
    elif names and given.value not in names:
        yield given.problem(expected, did_you_mean(given.value, names))


def _known(entry: Node, revision: Revision) -> Known:
    given = {key: str(node.value) for key, node in entry.entries.items()}
    own = revision.requirements[given["requirement"]].level
    level = given.get("level", own)
    at = revision.order.index(level)
    # The campaigns of a tag hold every requirement: a later level is not about them.
    is_later = at > revision.order.index(own)
    tags = () if is_later else tuple(tag.title for tag in revision.tags)
    return Known(
        given["requirement"],
        given["scenario"],
        given["reason"],
        level,
        given.get("subject"),
        (*revision.order[at:], *tags),
    )


def passed(
    known: Sequence[Known], revision: Revision, evidence: Evidence
) -> tuple[Known, ...]:
    """The entries that did not show, although all that would show them was run."""
    shown = tuple(broken(revision, evidence))
    return tuple(
        entry
        for entry in known
        if not any(map(entry.covers, shown)) and _was_tried(entry, revision, evidence)
    )


def _was_tried(entry: Known, revision: Revision, evidence: Evidence) -> bool:
    """One that proved nothing, or was not run, does not say that it passed."""
    outcomes = [
        evidence.of(entry.scenario, campaign.id)
        for level in revision.up_to(entry.level)
        for campaign in level.campaigns
    ]
    return all(outcome is not None and not outcome.doubts for outcome in outcomes)


def is_known(stop: Stop, known: Sequence[Known]) -> bool:
    """Whether a stop is listed."""
    return any(entry.covers(stop) for entry in known)
