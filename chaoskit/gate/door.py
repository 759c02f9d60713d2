"""The gate itself: see the package's docstring."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from chaoskit.gate.names import FreshNames
from chaoskit.gate.recorder import Recorder
from chaoskit.model.address import Address, Edge, Operation
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import Cause, FaultFired
from chaoskit.model.schedule import Fault, Schedule

Reply = TypeVar("Reply")
_DONE_TO_A_HOST = frozenset({FaultKind.RESTART, FaultKind.ROLLBACK, FaultKind.EXPIRE})
_DONE_TO_THE_AGENT = frozenset(
    {
        *(FaultKind.KILL_ONE, FaultKind.TERM, FaultKind.INT, FaultKind.SKEW),
        FaultKind.POWERLOSS,
    }
)
_CUTS = frozenset(
    {
        *(FaultKind.KILL, FaultKind.POWERLOSS, FaultKind.RESTART),
        *(FaultKind.REFUSE, FaultKind.DROP_REPLY, FaultKind.TEAR),
    }
)

Send = Callable[[bytes], Awaitable[object]]
EndLife = Callable[[int, Cause], Awaitable[None]]


Endpoint = tuple[str, int]
"""Host and port."""
Strike = Callable[[int, Fault], Awaitable[None]]
"""Does to the agent, or to its machine, what a fault other than a kill asks for."""


class Dropped(Exception):
    """Reset the message's connection and answer nothing."""


class Failed(Exception):
    """Answer with the service's own error, which the fault's argument names."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class Host(Protocol):
    """A service that faults can do something to."""

    async def suffer(self, fault: Fault, crossing: "Crossing") -> bool:
        """Restart, roll back or expire, as the fault says; nothing else crosses.

        Returns False where it found nothing to do.
        """


class Whose(Protocol):
    """Tells whose life it is, where several are open; None: nobody's that is open."""

    def connection(self, client: Endpoint, server: Endpoint) -> int | None:
        """The life that holds the client's end of a connection."""

    def process(self, pid: int) -> int | None:
        """The life that a process is of."""


class Census(Protocol):
    """Tells the generation in which a message of one of many processes arrives."""

    def arrived(self, life: int, operation: Operation) -> tuple[int, bool]:
        """The generation; and whether it is one poll too many to be recorded."""


class Choose(Protocol):
    """Chooses a fault while a message is held, where none is scheduled there."""

    def __call__(self, address: Address) -> Fault | None:
        """The fault that is to strike, if one is."""


class Watch(Protocol):
    """Looks at the world while a message is held (see `chaoskit.explore.closure`)."""

    async def __call__(self, address: Address) -> bool:
        """Return True to end the life here, as if killed at this address."""


@dataclass(frozen=True)
class Crossing:
    """A message that has arrived: whose it is, what it asks, and its number.

    ``generation`` is the life of its addresses, and ``stem`` their text, up to the
    edge. A ``silent`` one leaves no trace in the history.
    """

    life: int
    operation: Operation
    nth: int
    message: int
    stem: str
    generation: int
    silent: bool = False

    def at(self, edge: Edge) -> Address:
        """The address of this message at an edge."""
        return Address(self.generation, self.operation, self.nth, edge)

    @property
    def is_looker(self) -> bool:
        """Whether it comes from a look of the harness's own: see `Gate.arrive`."""
        return self.life < 0


def _text_of(crossing: Crossing) -> str:
    """Its operation, as the addresses have it."""
    return crossing.stem.partition(":")[2].rpartition("#")[0]


class Gate:
    """See the package's docstring. One gate serves one trial."""

    def __init__(
        self,
        record: Recorder,
        names: FreshNames,
        schedule: Schedule,
        end_life: EndLife,
        watch: Watch | None = None,
        strike: Strike | None = None,
        whose: Whose | None = None,
        census: Census | None = None,
        choose: Choose | None = None,
    ) -> None:
        self.whose = whose
        self._census = census
        self.record = record
        self.names = names
        self.unfired = list(schedule.faults)
        self._armed = True
        self._paused = 0
        self._end_life = end_life
        self._strike = strike
        self._watch = watch
        self._choose = choose
        self._door = asyncio.Lock()
        self._over: dict[int, asyncio.Event] = {}
        self._messages = len(record.events)
        self._counts: Counter[tuple[int, str]] = Counter()
        self._changed: Counter[tuple[int, str]] = Counter()
        self._final: dict[int, int] = {}
        self._idle: set[int] = set()
        self._known: dict[tuple[str, str, str | None], tuple[Operation, str]] = {}
        self._in_flight: Counter[int] = Counter()
        self._quiet: dict[int, asyncio.Event] = {}

    def arrive(self, life: int, operation: Operation) -> Crossing:
        """Count a whole request.

        Lives below 0 are looks of the harness's own, by a command of the agent's: they
        pass the door like anybody, uncounted and unrecorded, and no fault meets them.

        Raises:
            Dropped: its life is already over.
        """
        if self.is_over(life):
            raise Dropped
        operation, text = self._named(operation)
        self._messages += 1
        generation, silent = life, life < 0
        if self._census is not None and life >= 0:
            generation, silent = self._census.arrived(life, operation)
        nth = self._counts[generation, text] = self._counts[generation, text] + 1
        stem = f"{generation}:{text}#{nth}:"
        return Crossing(life, operation, nth, self._messages, stem, generation, silent)

    @property
    def counts_changes(self) -> bool:
        """Whether services are to tell of messages that changed nothing."""
        return self._census is not None

    def has_applied(self, crossing: Crossing, *, changed: bool) -> None:
        """Number a message by what it has changed, told while it is applied.

        Many processes try for the same thing, and how often in vain is a race. What
        was tried in vain has no number of its own, and no ``after``: the next one that
        tries has its number. So what has changed something is the n-th that did.
        """
        counted = crossing.generation, _text_of(crossing)
        if changed:
            self._changed[counted] += 1
            self._final[crossing.message] = self._changed[counted]
        else:
            self._counts[counted] -= 1
            self._idle.add(crossing.message)

    def _renumbered(self, crossing: Crossing) -> Crossing:
        """The message with the number that it has now that it is applied."""
        nth = self._final.get(crossing.message, crossing.nth)
        if nth == crossing.nth:
            return crossing
        stem = f"{crossing.generation}:{_text_of(crossing)}#{nth}:"
        return replace(crossing, nth=nth, stem=stem)

    def _named(self, operation: Operation) -> tuple[Operation, str]:
        """The operation with its key renamed, and its text; worked out only once."""
        asked = (operation.service, operation.op, operation.key)
        if asked not in self._known:
            if operation.key is not None:
                operation = replace(operation, key=self.names(operation.key))
            self._known[asked] = operation, str(operation)
        return self._known[asked]

    async def cross(
        self,
        crossing: Crossing,
        apply: Callable[[], Awaitable[Reply]],
        host: Host | None = None,
        pieces: int | None = None,
        work: Callable[[], Awaitable[object]] | None = None,
    ) -> Reply:
        """Take a message through both edges; returns what `apply` returned.

        Args:
            crossing: as `arrive` gave it.
            apply: does what the message asks; called twice for a `duplicate`.
            host: the service, where a fault can do something to it.
            pieces: how many pieces the reply has (for files: bytes the write has).
            work: what changes nothing yet and may have to wait for another message
                (for its lock, say): done first, while others pass the door.

        Raises:
            Dropped: nothing is to be answered; the connection is reset.
            Failed: an error is to be answered.
        """
        self._in_flight[crossing.life] += 1
        try:
            if self.is_calm_for(crossing) and not self._door.locked():
                return await self._only_count(crossing, apply, pieces, work)
            async with self._door:
                faults = await self._edge(crossing, Edge.BEFORE, host, pieces)
            await self._linger(crossing.life, faults)
            if work is not None:
                await work()
            async with self._door:
                reply = await apply()
                if any(fault.kind is FaultKind.DUPLICATE for fault in faults):
                    reply = await apply()
                await self._end_torn_write(crossing, pieces)
                crossing = self._renumbered(crossing)
                faults = await self._edge(crossing, Edge.AFTER, host, pieces)
            await self._linger(crossing.life, faults)
            return reply
        finally:
            self._landed(crossing.life)

    async def _only_count(
        self,
        crossing: Crossing,
        apply: Callable[[], Awaitable[Reply]],
        pieces: int | None,
        work: Callable[[], Awaitable[object]] | None,
    ) -> Reply:
        """The way of most messages, made short: no fault is due and nobody looks."""
        self._count(crossing, Edge.BEFORE, pieces)
        if work is not None:
            await work()
        async with self._door:
            reply = await apply()
            self._count(self._renumbered(crossing), Edge.AFTER, pieces)
        return reply

    async def pass_by(self, crossing: Crossing) -> None:
        """Take a message that changes nothing through its one edge, ``before``.

        Raises:
            Dropped: nothing is to be answered.
        """
        self._in_flight[crossing.life] += 1
        try:
            async with self._door:
                faults = await self._edge(crossing, Edge.BEFORE, None, None)
            await self._linger(crossing.life, faults)
            if self.is_over(crossing.life):
                raise Dropped
        finally:
            self._landed(crossing.life)

    async def deliver(
        self, crossing: Crossing, pieces: Sequence[bytes], send: Send
    ) -> None:
        """Send the reply of a message that has crossed, cut where a fault says so.

        Raises:
            Dropped: reset the connection; what was sent stays sent.
            Failed: end the reply with the error that the fault names.
        """
        sent = 0
        for part in self._parts_due(crossing, len(pieces)):
            await send(b"".join(pieces[sent:part]))
            sent = part
            async with self._door:
                faults = await self._edge(crossing, Edge.of_part(part), None, None)
            await self._linger(crossing.life, faults)
        await send(b"".join(pieces[sent:]))

    def is_cut(self, crossing: Crossing) -> bool:
        """Whether a fault is due inside the reply of this message."""
        return any(fault.at.edge.part for fault in self._due_at_any_edge(crossing))

    def torn(self, crossing: Crossing, pieces: int | None) -> int | None:
        """How many of this write's bytes may land, where it is to be torn."""
        fault = self._tear_of(crossing, pieces)
        return fault.at.edge.part if fault else None

    def expects(self, kind: FaultKind, service: str) -> bool:
        """Whether a fault of that kind is still due on a service."""
        return self._armed and any(
            fault.kind is kind and fault.at.operation.service == service
            for fault in self.unfired
        )

    @property
    def is_calm(self) -> bool:
        """Whether no fault is due any more and nobody looks: messages only count."""
        return not self._is_watchful and not (self._armed and self.unfired)

    @property
    def _is_watchful(self) -> bool:
        return self._watch is not None or self._choose is not None

    def is_calm_for(self, crossing: Crossing) -> bool:
        """Whether nobody looks, and no fault is due on what this message asks for."""
        if crossing.is_looker or crossing.message in self._idle:
            return True
        if self._is_watchful:
            return False
        asked = crossing.operation
        return not self._armed or all(f.at.operation != asked for f in self.unfired)

    def is_busy(self, life: int) -> bool:
        """Whether a message of it is at the gate."""
        return self._in_flight[life] > 0

    def is_due(self, generation: int) -> bool:
        """Whether a fault is still due in a generation."""
        return self._armed and any(
            fault.at.life in (generation, None) for fault in self.unfired
        )

    def is_over(self, life: int) -> bool:
        """Whether the life has ended, so that what it still sends is late."""
        return life in self._over and self._over[life].is_set()

    def close(self, life: int) -> None:
        """From here on the life is over: what arrives from it is dropped."""
        self._end_of(life).set()

    async def settled(self, life: int) -> None:
        """Wait until no message of a life that is over is on its way."""
        while self._in_flight[life]:
            await self._quiet.setdefault(life, asyncio.Event()).wait()

    def disarm(self) -> None:
        """Let no further fault fire and nobody look; `unfired` stays as it is."""
        self._armed = False
        self._watch = None
        self._choose = None

    def _count(self, crossing: Crossing, edge: Edge, pieces: int | None) -> None:
        """Record that a message is at an edge, if its life is not over."""
        silent = crossing.silent or crossing.message in self._idle
        if self.is_over(crossing.life):
            if edge == Edge.AFTER and not silent:
                self.record.crossed(crossing.life, f"{crossing.stem}{edge}", late=True)
            raise Dropped
        if not silent:
            self.record.crossed(crossing.life, f"{crossing.stem}{edge}", pieces)

    async def _edge(
        self, crossing: Crossing, edge: Edge, host: Host | None, pieces: int | None
    ) -> list[Fault]:
        """Record that a message is at an edge, and let strike what is due there.

        Returns the faults that were due.
        """
        self._count(crossing, edge, pieces)
        if self.is_calm_for(crossing):
            return []
        address, life = crossing.at(edge), crossing.life
        faults = self._due(address) or self._chosen(address, crossing)
        outcomes = [await self._suffer(fault, crossing, host) for fault in faults]
        if ends := [outcome for outcome in outcomes if outcome is not None]:
            raise next((e for e in ends if isinstance(e, Dropped)), ends[0])
        watch = None if crossing.silent else self._watch
        if not faults and watch is not None and await watch(address):
            await self._end(life, "cut")
            raise Dropped
        return faults

    async def _suffer(
        self, fault: Fault, crossing: Crossing, host: Host | None
    ) -> Exception | None:
        """Let one fault strike; returns what becomes of the message, if it ends."""
        kind, idle = fault.kind, False
        if kind in _DONE_TO_A_HOST:
            assert host is not None, f"{crossing.operation} has no host for {kind}"
            idle = not await host.suffer(fault, crossing)
        self.record(
            FaultFired(
                life=crossing.life,
                fault=str(fault),
                idle=idle,
                message=crossing.message,
            )
        )
        if fault.ends_its_life and kind is not FaultKind.KILL_ONE:
            await self._end(crossing.life, "fault")
        if kind in _DONE_TO_THE_AGENT:
            assert self._strike is not None, f"nobody is there to {kind} the agent"
            await self._strike(crossing.life, fault)
        if kind in (FaultKind.ERROR, FaultKind.FULL):
            return Failed(fault)
        return Dropped() if kind in _CUTS else None

    async def _end(self, life: int, cause: Cause) -> None:
        self.close(life)
        await self._end_life(life, cause)

    async def _linger(self, life: int, faults: Sequence[Fault]) -> None:
        """What holds a message while others pass the door."""
        for fault in faults:
            if fault.kind is FaultKind.PAUSE:
                assert self._strike is not None, "nobody is there to pause the agent"
                self._paused += 1
                try:
                    await self._strike(life, fault)
                finally:
                    self._paused -= 1
            if fault.kind is FaultKind.DELAY:
                # A life that is over waits for nothing: its message lands late, now.
                with suppress(TimeoutError):
                    async with asyncio.timeout(float(fault.chosen or 0)):
                        await self._end_of(life).wait()

    def _end_of(self, life: int) -> asyncio.Event:
        return self._over.setdefault(life, asyncio.Event())

    def _due(self, address: Address) -> list[Fault]:
        """The faults at an address, in the schedule's order; each fires once."""
        if not self._armed or not self.unfired:
            return []
        places = (address, address.in_every_life())
        # One that is scheduled twice fires twice: each time that a message comes by.
        here = (f for f in self.unfired if f.at in places and not self._nests(f))
        due = list(dict.fromkeys(here))
        for fault in due:
            if fault.at.life is not None:
                self.unfired.remove(fault)
        return due

    def _chosen(self, address: Address, crossing: Crossing) -> list[Fault]:
        if self._choose is None or crossing.silent:
            return []
        fault = self._choose(address)
        return [] if fault is None else [fault]

    def _nests(self, fault: Fault) -> bool:
        """Whether it is a pause in every life, and this life took over for another.

        Each would open one more, without an end.
        """
        in_every_life = fault.kind is FaultKind.PAUSE and fault.at.life is None
        return in_every_life and self._paused > 0

    def _due_at_any_edge(self, crossing: Crossing) -> list[Fault]:
        nobody = crossing.is_looker or crossing.message in self._idle
        if not self._armed or not self.unfired or nobody:
            return []
        first = crossing.at(Edge.BEFORE)
        places = (first, first.in_every_life())
        return [f for f in self.unfired if f.at.at_edge(Edge.BEFORE) in places]

    def _parts_due(self, crossing: Crossing, pieces: int) -> list[int]:
        due = {fault.at.edge.part or 0 for fault in self._due_at_any_edge(crossing)}
        return sorted(part for part in due if 0 < part < pieces)

    def _tear_of(self, crossing: Crossing, pieces: int | None) -> Fault | None:
        due = (f for f in self._due_at_any_edge(crossing) if f.kind is FaultKind.TEAR)
        inside = range(1, pieces or 0)
        return next((fault for fault in due if fault.at.edge.part in inside), None)

    async def _end_torn_write(self, crossing: Crossing, pieces: int | None) -> None:
        """A write of which only some bytes have landed ends its life there."""
        fault = self._tear_of(crossing, pieces)
        if fault is not None and fault.ends_its_life:
            await self._edge(crossing, fault.at.edge, None, None)

    def _landed(self, life: int) -> None:
        self._in_flight[life] -= 1
        if not self._in_flight[life] and (quiet := self._quiet.pop(life, None)):
            quiet.set()
