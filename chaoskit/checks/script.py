"""The script as the checks see it: logical calls, recognised by tool and arguments.

Two equal calls in a script are two effects that no observer can tell apart, so calls
are judged in groups: all calls of one tool with equal arguments. Where the model may
wobble, a call has variants, and any of them is that call.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from chaoskit.model.calls import Identity, identities, identity, spoken
from chaoskit.model.history import Asked, Delivered
from chaoskit.model.scenario import LogicalCall, Scenario, ToolClass
from chaoskit.model.trial import Trial


@dataclass(frozen=True)
class Group:
    """All calls of the script that look the same from outside."""

    calls: tuple[LogicalCall, ...]
    tool_class: ToolClass

    @property
    def tool(self) -> str:
        """The tool that all of them call."""
        return self.calls[0].tool

    @property
    def identity(self) -> Identity:
        """What the group is named by: its first call, as the script has it."""
        return identity(self.calls[0])

    @cached_property
    def identities(self) -> frozenset[Identity]:
        """What their deliveries are recognised by."""
        return frozenset().union(*map(identities, self.calls))

    def __len__(self) -> int:
        return len(self.calls)

    def __str__(self) -> str:
        return spoken(self.tool, self.calls[0].args)


@dataclass(frozen=True)
class Script:
    """The groups of a scenario, found by what was delivered."""

    scenario: Scenario

    @cached_property
    def calls(self) -> tuple[LogicalCall, ...]:
        """Every call, in the script's order."""
        return self.scenario.calls()

    @cached_property
    def groups(self) -> dict[Identity, Group]:
        """Every group, by each of its identities."""
        return {name: group for group in self._groups for name in group.identities}

    @cached_property
    def _groups(self) -> tuple[Group, ...]:
        """Every group, in the order of its first call."""
        return tuple(
            Group(tuple(calls), self.tool_class(calls[0].tool))
            for calls in _alike(self.calls)
        )

    @property
    def effects(self) -> Iterator[Group]:
        """The groups whose tools change something."""
        return (g for g in self._groups if g.tool_class is not ToolClass.READ)

    def tool_class(self, tool: str) -> ToolClass:
        """The class that the scenario declares for a tool."""
        return self.scenario.tools[tool].cls

    def deliveries(self, trial: Trial) -> Iterator[tuple[Group | None, Delivered]]:
        """What reached a tool that can change something, and the group it is of."""
        for delivery in trial.of(Delivered):
            declared = self.scenario.tools.get(delivery.tool)
            if declared is None or declared.cls is not ToolClass.READ:
                yield self.groups.get(identity(delivery)), delivery


def _alike(calls: Iterable[LogicalCall]) -> list[list[LogicalCall]]:
    """The calls in groups that share a form, each in the script's order."""
    found: list[list[LogicalCall]] = []
    for call in calls:
        forms = identities(call)
        same = [g for g in found if any(forms & identities(other) for other in g)]
        apart = [g for g in found if g not in same]
        found = [*apart, [*(other for g in same for other in g), call]]
    return sorted((sorted(group, key=_place) for group in found), key=_first_place)


def _place(call: LogicalCall) -> tuple[int, int]:
    return call.turn, call.position


def _first_place(group: list[LogicalCall]) -> tuple[int, int]:
    return _place(group[0])


def asked_turns(events: Iterable[object]) -> Iterator[Asked]:
    """The requests that the model answered."""
    return (e for e in events if isinstance(e, Asked) and e.problem is None)


def open_names(calls: Iterable[LogicalCall], asked: Iterable[Asked]) -> set[str]:
    """Which calls the model asked for whose result no request has carried."""
    answered = list(asked)
    last = max((each.turn for each in answered), default=-1)
    carried = {name for each in answered for name in each.carried}
    return {name_of(call) for call in calls if call.turn <= last} - carried


def name_of(call: LogicalCall) -> str:
    """A call's place in the script, as `Asked.carried` writes it."""
    return f"{call.turn}.{call.position}"
