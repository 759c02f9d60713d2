"""Operations that mix a heartbeat with changes of the state.

A periodic operation is struck at its first occurrence only. That is enough where all of
its occurrences do the same, as a heartbeat does. Where some of them carry the agent's
progress, the others make it impossible to say which occurrence is which from one run to
the next, and a sweep leaves crossings out that matter.

A claim that several workers try for is between the two: one wins, mostly the first, and
what the others try changes nothing. Where the changes are at the same occurrences in
both runs, all before the numbers part, each of them can be told, and is struck.

What is changed may bear a name that is fresh in each run, that of a process say, or
that of whichever of some parallel calls was first. So where the numbers are the same,
it is enough that the changes are alike in the same places; or, where nothing that was
there is ever overwritten, that as much was added, in whatever order. Parallel calls
write rows in batches of their own sizes, whoever comes first, and in a list that is
sorted by random ids a row may come to stand anywhere. A heartbeat overwrites.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.fingerprint import Canon
from chaoskit.model.address import Edge, Operation
from chaoskit.model.services import STORES
from chaoskit.model.state import View
from chaoskit.model.trial import Trial

Views = Mapping[str, View]
"""What was seen in a run, by address."""

Fields = Mapping[str, str]
"""What a world holds, see `Canon.fields`."""
_PLACE = re.compile(r"\.\d+(?=\.|$)")
_NAME = re.compile(r"<\d+>")


class Change(NamedTuple):
    """What one message changed: the paths of fields, and what was added to what.

    ``added`` is None where something that was there is gone, or is another now.
    """

    paths: frozenset[str] = frozenset()
    added: frozenset[tuple[str, int]] | None = frozenset()


@dataclass(frozen=True)
class Steadiness:
    """What the operations on a store did in two fault-free runs.

    ``mixed`` cannot be told apart between runs, message by message; ``idle`` changed
    nothing after their first occurrence, so their number means nothing either.
    ``changing`` are the occurrences, from 1, at which a contended one changed something
    in both runs.
    """

    mixed: tuple[Operation, ...]
    idle: frozenset[Operation]
    changing: Mapping[Operation, frozenset[int]] = field(default_factory=dict)


def steadiness(
    baseline: Baseline, views: tuple[Views, Views], canon: Canon
) -> Steadiness:
    """Compare what each message to a store changed in both runs."""
    first = _changes(baseline.first, views[0], canon)
    second = _changes(baseline.second, views[1], canon)
    mixed, idle, changing = [], set(), {}
    for operation in sorted(first.keys() & second.keys(), key=str):
        one, other = first[operation], second[operation]
        later = {change.paths for change in (*one[1:], *other[1:])}
        if _are_alike(one, other):
            changing[operation] = frozenset(_that_change(one))
        elif len(later) > 1 and not _is_added(one, other):
            mixed.append(operation)
        if later == {frozenset()}:
            idle.add(operation)
    return Steadiness(tuple(mixed), frozenset(idle), changing)


def _are_alike(one: list[Change], other: list[Change]) -> bool:
    """Whether both changed something at the same occurrences, and the like of it."""
    return _that_change(one) == _that_change(other) or _shape(one) == _shape(other)


def _that_change(changes: list[Change]) -> dict[int, frozenset[str]]:
    """What occurrences changed, by their number, but for those that changed nothing."""
    paths = enumerate((change.paths for change in changes), 1)
    return {nth: changed for nth, changed in paths if changed}


def _shape(changes: list[Change]) -> list[int | None]:
    """Each change by the place where its like was first, None where there is none."""
    paths = [change.paths for change in changes]
    return [paths.index(changed) if changed else None for changed in paths]


def _is_added(one: list[Change], other: list[Change]) -> bool:
    """Whether both added the same, message by message, in whatever order."""
    added = [Counter(change.added for change in side) for side in (one, other)]
    return added[0] == added[1] and None not in added[0]


def _changes(trial: Trial, views: Views, canon: Canon) -> dict[Operation, list[Change]]:
    """What each message to a store changed, by operation and in order.

    The gate lets one message after the other through and looks each time, so the look
    before, at whatever message, shows the world that this one found.
    """
    found: dict[Operation, list[Change]] = {}
    was: Fields = {}
    for address in trial.addresses:
        view = views.get(str(address))
        now = was if view is None else canon.fields(_store(view))
        if address.operation.service in STORES and address.edge == Edge.AFTER:
            found.setdefault(address.operation, []).append(_change(was, now))
        was = now
    return found


def _change(was: Fields, now: Fields) -> Change:
    paths = was.keys() | now.keys()
    differing = frozenset(path for path in paths if was.get(path) != now.get(path))
    before, after = _held(was, differing), _held(now, differing)
    if before - after:
        return Change(differing, None)
    added = Counter[str]()
    for (place, _), times in (after - before).items():
        added[place] += times
    return Change(differing, frozenset(added.items()))


def _held(fields: Fields, paths: Iterable[str]) -> Counter[tuple[str, str]]:
    """How often each value is there, wherever in a list, whatever its random words."""
    return Counter(
        (_PLACE.sub(".#", path), _NAME.sub("<?>", json.dumps(value)))
        for path in paths
        for value in json.loads(fields.get(path, "[]"))
    )


def _store(view: View) -> View:
    return {name: view[name] for name in STORES if name in view}
