"""What the gate calls back for: faults that strike the agent itself, but for a kill.

- ``kill_one``: SIGKILL to the first process alone, which is reaped. The life is
  recorded as ended; its children live on, as that life, until the trial ends.
- ``term``, ``int``: SIGTERM or SIGINT to the whole group, since that is what a terminal
  does on Ctrl-C and what systemd does to a service; an agent whose first process alone
  should act on it must see to that. The message goes on at once. What still runs when
  its grace is over is killed.
- ``pause``: all of the life is stopped, and another one takes over, to its end or its
  rest. Then the message goes on, and so does the life that was stopped.
- ``skew``: the wall clock of this life and the later ones jumps.
- ``powerloss``: the life has been killed, and all else that runs of the agent is; what
  the machine had not synced is lost.
"""

import signal
from collections.abc import Callable

from chaoskit.agents import Clock, LaunchError
from chaoskit.model.faults import FaultKind
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.trial.company import Company
from chaoskit.trial.living import Living
from chaoskit.world import World

_SIGNALS = {FaultKind.TERM: signal.SIGTERM, FaultKind.INT: signal.SIGINT}


class Strikes:
    """The faults of one trial that are done to its lives."""

    def __init__(
        self,
        company: Company,
        world: World,
        grace: float,
        clock: Clock | None,
        lost: Callable[[Living], None],
    ) -> None:
        self._company = company
        self._world = world
        self._grace = grace
        self._clock = clock
        self._lost = lost
        self._ahead = 0.0

    async def __call__(self, life: int, fault: Fault) -> None:
        """See `chaoskit.gate.Strike`."""
        if fault.kind is FaultKind.POWERLOSS:
            await self._lose_power(life, fault.chosen)
            return
        living = self._company.get(life)
        if living is None:
            return  # it was faster, and has ended by itself
        if fault.kind is FaultKind.SKEW:
            self._skew(living, fault)
        elif fault.kind in _SIGNALS:
            await living.ask_to_end(_SIGNALS[fault.kind], self._grace)
        elif living.left is not None:
            return  # what is left of a life has no first process, and nobody's place
        elif fault.kind is FaultKind.KILL_ONE:
            await living.leave_children()
        elif fault.kind is FaultKind.PAUSE:
            await living.pause()

    async def _lose_power(self, life: int, loss: str | None) -> None:
        """All that runs stops with the machine; the life itself has been killed."""
        others = self._company.others(life)
        for living in others:
            self._lost(living)
            living.struck = living.struck or "fault"
        for living in others:
            await living.process.kill()
        await self._world.lose_power(loss)

    def _skew(self, living: Living, fault: Fault) -> None:
        assert self._clock is not None, f"{fault} and no clock"
        if all(map(self._clock.governs, living.process.pids())):
            self._ahead += float(fault.chosen or 0)
            self._clock.set(self._ahead)
        else:
            living.fail(LaunchError(_OUT_OF_REACH.format(fault=fault)))


_OUT_OF_REACH = (
    "{fault} cannot be done: a process of the agent does not load the library that "
    "moves its clock (LD_PRELOAD), as a program that is linked statically does not. "
    "Take `skew` out of the scenario's faults for this agent"
)


def skews(schedule: Schedule) -> bool:
    """Whether a schedule makes the clock jump, so that lives must be ready for it."""
    return any(fault.kind is FaultKind.SKEW for fault in schedule.faults)
