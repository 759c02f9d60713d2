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
it is enough that the changes are alike in the same places.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.fingerprint import Canon
from chaoskit.model.address import Edge, Operation
from chaoskit.model.services import STORES
from chaoskit.model.state import View
from chaoskit.model.trial import Trial

Views = Mapping[str, View]
"""What was seen in a run, by address."""

Change = frozenset[str]
"""The paths of the fields that one message changed."""


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
        later = {*one[1:], *other[1:]}
        if _that_change(one) == _that_change(other) or _shape(one) == _shape(other):
            changing[operation] = frozenset(_that_change(one))
        elif len(later) > 1:
            mixed.append(operation)
        if later == {frozenset()}:
            idle.add(operation)
    return Steadiness(tuple(mixed), frozenset(idle), changing)


def _that_change(changes: list[Change]) -> dict[int, Change]:
    """What occurrences changed, by their number, but for those that changed nothing."""
    return {nth: change for nth, change in enumerate(changes, 1) if change}


def _shape(changes: list[Change]) -> list[int | None]:
    """Each change by the place where its like was first, None where there is none."""
    return [changes.index(change) if change else None for change in changes]


def _changes(trial: Trial, views: Views, canon: Canon) -> dict[Operation, list[Change]]:
    """What each message to a store changed, by operation and in order.

    The gate lets one message after the other through and looks each time, so the look
    before, at whatever message, shows the world that this one found.
    """
    found: dict[Operation, list[Change]] = {}
    was: dict[str, str] = {}
    for address in trial.addresses:
        view = views.get(str(address))
        now = was if view is None else canon.fields(_store(view))
        if address.operation.service in STORES and address.edge == Edge.AFTER:
            differing = (path for path in was | now if was.get(path) != now.get(path))
            found.setdefault(address.operation, []).append(frozenset(differing))
        was = now
    return found


def _store(view: View) -> View:
    return {name: view[name] for name in STORES if name in view}
