"""Operations that mix a heartbeat with changes of the state.

A periodic operation is struck at its first occurrence only. That is enough where all of
its occurrences do the same, as a heartbeat does. Where some of them carry the agent's
progress, the others make it impossible to say which occurrence is which from one run to
the next, and a sweep leaves crossings out that matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass

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
    """

    mixed: tuple[Operation, ...]
    idle: frozenset[Operation]


def steadiness(
    baseline: Baseline, views: tuple[Views, Views], canon: Canon
) -> Steadiness:
    """Compare what each message to a store changed in both runs."""
    first = _changes(baseline.first, views[0], canon)
    second = _changes(baseline.second, views[1], canon)
    mixed, idle = [], set()
    for operation in sorted(first.keys() & second.keys(), key=str):
        later = {*first[operation][1:], *second[operation][1:]}
        if first[operation] != second[operation] and len(later) > 1:
            mixed.append(operation)
        if later == {frozenset()}:
            idle.add(operation)
    return Steadiness(tuple(mixed), frozenset(idle))


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
