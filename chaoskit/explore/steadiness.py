"""Operations that mix a heartbeat with changes of the state.

A periodic operation is struck at its first occurrence only. That is enough where all of
its occurrences do the same, as a heartbeat does. Where some of them carry the agent's
progress, the others make it impossible to say which occurrence is which from one run to
the next, and a sweep leaves crossings out that matter.
"""

from collections.abc import Iterator, Mapping

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.fingerprint import Canon
from chaoskit.model.address import Address, Edge, Operation
from chaoskit.model.state import View
from chaoskit.model.trial import Trial

Views = Mapping[str, View]
"""What was seen in a run, by address."""

Change = frozenset[str]
"""The paths of the fields that one message changed."""


def mixed(
    baseline: Baseline, views: tuple[Views, Views], canon: Canon
) -> tuple[Operation, ...]:
    """The operations on a store whose crossings cannot be told apart between runs."""
    first = _changes(baseline.first, views[0], canon)
    second = _changes(baseline.second, views[1], canon)
    return tuple(
        operation
        for operation in sorted(first.keys() & second.keys(), key=str)
        if first[operation] != second[operation]
        and len({*first[operation][1:], *second[operation][1:]}) > 1
    )


def _changes(trial: Trial, views: Views, canon: Canon) -> dict[Operation, list[Change]]:
    """What each message to a store changed, by operation and in order."""
    found: dict[Operation, list[Change]] = {}
    for address in trial.addresses:
        if address.operation.service == "redis" and address.edge is Edge.AFTER:
            change = frozenset(_changed(address, views, canon))
            found.setdefault(address.operation, []).append(change)
    return found


def _changed(address: Address, views: Views, canon: Canon) -> Iterator[str]:
    before = views.get(str(address.at_edge(Edge.BEFORE)))
    after = views.get(str(address))
    if before is None or after is None:
        return
    was, now = canon.fields(_store(before)), canon.fields(_store(after))
    yield from (path for path in was | now if was.get(path) != now.get(path))


def _store(view: View) -> View:
    return {"redis": view["redis"]}
