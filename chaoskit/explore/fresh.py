"""Keys that are fresh in each run and do not look it: learned from two clean runs.

A long random word is known at sight (`chaoskit.gate.FreshNames`). A short one, such as
``lease:k3f9``, is only known by its absence from the other run: the n-th key of an
operation that one run alone has, beside the n-th that the other alone has, shows which
of its words is fresh.
"""

import re
from collections import defaultdict
from collections.abc import Iterator

from chaoskit.explore.baseline import Baseline
from chaoskit.model.address import Operation
from chaoskit.model.trial import Trial

_PARTS = re.compile(r"[0-9A-Za-z_-]+|[^0-9A-Za-z_-]+")


def fresh_patterns(baseline: Baseline) -> tuple[str, ...]:
    """Regular expressions of whole keys, with a group around each fresh word."""
    first = _alone(baseline.first, baseline.second)
    second = _alone(baseline.second, baseline.first)
    found: dict[str, None] = {}
    for kind in first.keys() & second.keys():
        for one, other in zip(first[kind], second[kind], strict=False):
            if pattern := _difference(one, other):
                found[pattern] = None
    return tuple(sorted(found))


def _alone(trial: Trial, other: Trial) -> dict[tuple[str, str], list[str]]:
    """Keys that only this run had, in order of first sight, by kind of operation."""
    elsewhere = {address.operation for address in other.addresses}
    keys: dict[tuple[str, str], list[str]] = defaultdict(list)
    for operation in _in_order(trial):
        if operation not in elsewhere and operation.key is not None:
            keys[operation.service, operation.op].append(operation.key)
    return keys


def _in_order(trial: Trial) -> Iterator[Operation]:
    yield from dict.fromkeys(address.operation for address in trial.addresses)


def _difference(one: str, other: str) -> str | None:
    """A pattern for both keys, if they have the same shape and differ in words only."""
    left, right = _PARTS.findall(one), _PARTS.findall(other)
    if len(left) != len(right):
        return None
    parts = []
    for a, b in zip(left, right, strict=True):
        if a == b:
            parts.append(re.escape(a))
        elif re.match(r"[0-9A-Za-z_-]", a) and re.match(r"[0-9A-Za-z_-]", b):
            parts.append("([0-9A-Za-z_-]+)")
        else:
            return None
    return "".join(parts)
