"""The worlds that a trial passes: looked at, kept if new, and known again."""

from chaoskit.explore.large import small
from chaoskit.explore.memory import remembered
from chaoskit.gate import FreshNames, Recorder
from chaoskit.model.address import Address
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import Event, FaultFired, History, LifeEnded
from chaoskit.model.schedule import Fault
from chaoskit.model.state import View, WorldState
from chaoskit.model.trial import SIGKILL
from chaoskit.model.visit import Look
from chaoskit.trial.leaks import Leaks
from chaoskit.trial.plan import Plan, Watching
from chaoskit.world import World


class Looks:
    """What one trial sees of its world, at crossings and after deaths."""

    def __init__(
        self,
        plan: Plan,
        world: World,
        record: Recorder,
        names: FreshNames,
        leaks: Leaks,
    ) -> None:
        self._plan = plan
        self._world = world
        self._record = record
        self._names = names
        self._leaks = leaks
        self._kept: dict[str, Look] = {}
        self._passed: set[str] = set()

    @property
    def kept(self) -> tuple[Look, ...]:
        """The worlds that nobody had seen, in order."""
        return tuple(self._kept.values())

    async def view(self, after: int | None = None) -> View:
        """The world now, large texts made small, and what judging remembers.

        ``after`` a life has ended, the stores are searched for what it let out.
        """
        world = await self._world.view()
        if after is not None:
            self._leaks.in_world(after, world, self._world)
        memory = remembered(self._record.events, self._plan.manifest.log, world)
        return {**small(dict(world), self._plan.run), "memory": memory}

    async def at(self, address: Address, watching: Watching) -> bool:
        """Look at the world at a crossing; True ends the recovery there."""
        # Only the last of the recoveries from here comes to the end, and looks there.
        view = await self.view(after=address.life if watching.snapshots else None)
        mark = str(address)
        if watching.canon is not None:
            mark = watching.canon.of_run(self._plan.run).fingerprint(view)
            if mark in watching.known:
                return self._is_back(mark) and not watching.thorough
        self._passed.add(mark)
        if mark not in self._kept:
            state = await self._state(address, view, snapshot=watching.snapshots)
            seen = mark if watching.canon is not None else None
            self._kept[mark] = Look(state, str(address), seen)
        return False

    def _is_back(self, mark: str) -> bool:
        """Whether a recovery has come to a known world other than its own start."""
        if not self._passed:
            self._passed.add(mark)
        return mark not in self._passed

    async def _state(
        self, address: Address, view: View, *, snapshot: bool
    ) -> WorldState:
        fault = Fault(FaultKind.KILL, address)
        prefix: History = ()
        if snapshot:  # else nobody goes on from here, and a long run has many looks
            prefix = (*self._record.events, *self._restored_death(fault))
        return WorldState(
            path=self._plan.path.then(fault),
            life=address.life or 0,
            run_id=self._plan.run,
            began=self._record.began,
            prefix=prefix,
            view=view,
            services=await self._world.snapshot() if snapshot else {},
            names=dict(self._names.known),
        )

    def _restored_death(self, fault: Fault) -> tuple[Event, ...]:
        """The kill that a snapshot stands for."""
        life, now = fault.at.life or 0, self._record.seconds()
        return (
            FaultFired(life=life, t=now, fault=str(fault)),
            LifeEnded(
                life=life, t=now, cause="restored", ending="died", signal=SIGKILL
            ),
        )
