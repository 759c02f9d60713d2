"""Closure: every crash state that any number of kills can reach.

A crash erases the agent's memory, so what a recovery does depends only on the world it
finds. The fault-free run passes through worlds; each distinct one is a crash state. The
agent is restarted in each; worlds seen during a recovery that nobody has seen join the
queue. When the queue is empty, no further number of kills can lead anywhere new.

Where a loss of power is tried too, each state with unsynced data is visited again
without that data, and once with its new names and without their data.

A recovery that comes to a world already known may stop there: the rest was, or will
be, seen from that world. What is assumed is that memory rebuilt from equal worlds
behaves equally.
Published ancestors of the idea are explicit-state model checkers (Holzmann's SPIN), and
for crashes ALICE and CrashMonkey; here the states are real worlds of real servers.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.fingerprint import Canon, moving_fields
from chaoskit.model.address import Address
from chaoskit.model.fault_table import AGENT
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import FaultFired
from chaoskit.model.schedule import Schedule
from chaoskit.model.state import View, WorldState
from chaoskit.model.visit import Look, Visit, Visited

PATH_SHOWN_MAX = 5


class Closure:
    """See the module's docstring; gives up after ``limit`` states.

    With ``deep`` it follows that many kills and no more: what lies beyond was not asked
    for, and leaves nothing undone.
    """

    def __init__(
        self,
        canon: Canon,
        looks: tuple[Look, ...],
        limit: int,
        faults: Collection[FaultKind] = (FaultKind.KILL,),
        deep: int | None = None,
    ) -> None:
        self.canon = canon
        self.faults = faults
        self.limit = limit
        self.deep = deep
        self.states: dict[str, WorldState] = {}
        self._baseline_looks = looks
        self._held_back: list[WorldState] = []
        self._deeper: set[str] = set()

    @property
    def known(self) -> frozenset[str]:
        """The fingerprints of every world seen so far."""
        return frozenset(self.states) | self._deeper

    @property
    def depth(self) -> int:
        """The largest number of kills on the path to a state."""
        return max((len(state.path) for state in self.states.values()), default=0)

    @property
    def ended(self) -> bool:
        """Whether every state found was visited."""
        return not self._held_back

    def first(self, baseline: Baseline) -> list[Visit]:
        """A recovery of each distinct world of the fault-free run.

        A list, not a stream: all of these worlds must be known before the first
        recovery starts, or it would not stop where it comes to one of them.
        """
        return [visit for look in self._baseline_looks for visit in self._found(look)]

    def after(self, visited: Visited) -> list[Visit]:
        """A recovery of each world that this visit was the first to see."""
        return [visit for look in visited.looks for visit in self._found(look)]

    def _found(self, look: Look) -> Iterator[Visit]:
        mark = look.fingerprint or self.canon.fingerprint(look.state.view)
        if mark in self.states:
            return
        if self.deep is not None and len(look.state.path) > self.deep:
            self._deeper.add(mark)
            return
        self.states[mark] = look.state
        if len(self.states) > self.limit:
            self._held_back.append(look.state)
            return
        if FaultKind.KILL in self.faults:
            yield Visit(origin=look.state)
        if FaultKind.POWERLOSS in self.faults and _has_unsynced(look.state.view):
            for loss in AGENT[FaultKind.POWERLOSS].arguments:
                yield Visit(origin=_without_power(look.state, loss))

    def why_endless(self) -> str:
        """In words: what keeps changing, so that there is always a new state."""
        places: dict[str, list[WorldState]] = {}
        for state in self.states.values():
            places.setdefault(_point(state), []).append(state)
        crowd = max(places.values(), key=len)
        moving = moving_fields(self.canon, (state.view for state in crowd))
        fields = [path for path in moving if not path.startswith("memory:")] or moving
        return (
            f"the closure did not end: {len(self.states)} states, {self.depth} kills "
            f"deep, {len(self._held_back)} of them not visited. What keeps moving is "
            f"{', '.join(fields[:PATH_SHOWN_MAX]) or 'not in the store'}. If it means "
            "nothing, list it under `volatile:` in the scenario; if the agent counts "
            "its lives, the states really are endless."
        )


def _has_unsynced(view: View) -> bool:
    files = view.get("files")
    return isinstance(files, Mapping) and bool(files.get("unsynced"))


def _without_power(state: WorldState, loss: str) -> WorldState:
    """The same crash, by a loss of power instead of a kill."""
    *before, last = state.path.faults
    fault = replace(last, kind=FaultKind.POWERLOSS, argument=loss)
    *prefix, fired, ended = state.prefix
    assert isinstance(fired, FaultFired)
    struck = fired.model_copy(update={"fault": str(fault)})
    return replace(
        state,
        path=Schedule((*before, fault)),
        prefix=(*prefix, struck, ended),
    )


def _point(state: WorldState) -> str:
    at: Address = state.path.faults[-1].at
    return at.point
