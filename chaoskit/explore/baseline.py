"""The fault-free run, made twice: what repeats, what is periodic, what is missing."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from chaoskit.model.address import Address, Edge, Operation
from chaoskit.model.calls import identity
from chaoskit.model.history import Applied, Asked
from chaoskit.model.manifest import Store
from chaoskit.model.services import STORES, store_service
from chaoskit.model.trial import Trial


@dataclass(frozen=True)
class Baseline:
    """Two clean runs of the same scenario; the first one is the yardstick.

    ``changing`` are the occurrences of a periodic operation that change something, the
    same ones in both runs (see `steadiness`).
    """

    first: Trial
    second: Trial
    changing: Mapping[Operation, frozenset[int]] = field(default_factory=dict)

    @cached_property
    def periodic(self) -> frozenset[Operation]:
        """Operations whose number differs between the runs: heartbeats and polls."""
        one, other = _counts(self.first), _counts(self.second)
        return frozenset(op for op in one | other if one[op] != other[op])

    @cached_property
    def targets(self) -> tuple[Address, ...]:
        """Every crossing that a fault can be scheduled at and is sure to reach.

        A periodic operation counts at its first occurrence only, and where it changes
        something; not at all where one of the runs had none.
        """
        both = set(_counts(self.first)) & set(_counts(self.second))
        return tuple(
            address
            for address in _achieved(self.first)
            if address.operation not in self.periodic
            or (
                address.operation in both
                and address.nth in {1, *self.changing.get(address.operation, ())}
            )
        )

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Why this pair of runs proves nothing, in words."""
        return tuple(self._doubts())

    def _doubts(self) -> Iterator[str]:
        if self.first.ended.outcome != self.second.ended.outcome:
            yield (
                f"one fault-free run was {self.first.ended.outcome}, the other "
                f"{self.second.ended.outcome}"
            )
        if _applied(self.first) != _applied(self.second):
            yield "the two fault-free runs did not apply the same effects"
        if _asked(self.first) != _asked(self.second):
            yield "the two fault-free runs did not ask the model the same questions"
        for op in sorted(self.periodic, key=str):
            if not _may_be_periodic(op):
                one, other = _counts(self.first)[op], _counts(self.second)[op]
                yield f"{op} crossed {one} times in one run and {other} in the other"


def without_effects(trial: Trial) -> bool:
    """Whether a run applied nothing, so that it cannot show exactly-once."""
    return not any(True for _ in trial.of(Applied))


def untouched(store: Store, seen: Container[str]) -> str:
    """Why no state was seen to be kept, if so; ``seen``: the services crossed to."""
    service = store_service(store)
    if service is None or service in seen:
        return ""
    return (
        f"the manifest says that state is kept in {store}, and nothing crossed to "
        f"{service}"
    )


def _may_be_periodic(operation: Operation) -> bool:
    """What an agent may do as often as it likes without changing the outcome."""
    return operation.service in STORES or operation.op.endswith("?")


def _counts(trial: Trial) -> Counter[Operation]:
    return Counter(address.operation for address in _achieved(trial))


def _achieved(trial: Trial) -> Iterator[Address]:
    """The crossings of a clean run, but for what several processes tried in vain.

    It changed nothing and has no ``after``: another run may have no such try.
    """
    known = set(map(str, trial.addresses)) if trial.is_fleet else set()
    for address in trial.addresses:
        tried = trial.is_fleet and address.operation.service in STORES
        if not tried or str(address.at_edge(Edge.AFTER)) in known:
            yield address


def _applied(trial: Trial) -> Counter[tuple[str, str]]:
    return Counter(identity(event) for event in trial.of(Applied))


def _asked(trial: Trial) -> Counter[tuple[int, str | None]]:
    return Counter((event.turn, event.problem) for event in trial.of(Asked))
