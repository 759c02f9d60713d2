"""The door that every message crosses: it counts, records and decides.

A service that has read a whole request lets it `arrive`, notes what it knows about it,
and hands `cross` the function that applies it::

    crossing = gate.arrive(life, Operation("tools", "charge_card", "o-1"))
    gate.record(Delivered(...))
    reply = await gate.cross(crossing, apply)

`cross` returns the reply to send, or raises `Dropped`: the life is over, and the
service closes the connection without a word. There are three rules.

1. A fault strikes while the message is held. The agent waits for an answer that will
   not come, so a kill needs no timer and cannot miss.
2. The world changes inside the door only, one message at a time. Whoever looks at the
   world from inside (a snapshot) sees the work of whole messages.
3. When a life ends, a message that had not passed ``before`` is dropped; one that had
   is applied, recorded as late, and not answered. A real network does the same.

The gate may not know agents: whoever builds it hands it `end_life`.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from chaoskit.model.address import Address, Edge, Operation
from chaoskit.model.history import Cause, Crossed, Event, FaultFired, from_line, to_line
from chaoskit.model.schedule import Fault, Schedule

Reply = TypeVar("Reply")
BLOT = "[canary]"
"""What stands in a history where the agent let its key out."""
EndLife = Callable[[int, Cause], Awaitable[None]]


class Dropped(Exception):
    """The message's life is over; close its connection and answer nothing."""


class Sink(Protocol):
    """Where history lines go as they happen; an open text file is one."""

    def write(self, line: str, /) -> object:
        """Take one line, its end included."""


class Watch(Protocol):
    """Looks at the world while a message is held (see `chaoskit.explore.closure`)."""

    async def __call__(self, address: Address) -> bool:
        """Return True to end the life here, as if killed at this address."""


@dataclass(frozen=True)
class Crossing:
    """A message that has arrived: whose it is, what it asks, and its number."""

    life: int
    operation: Operation
    nth: int
    message: int

    def at(self, edge: Edge) -> Address:
        """The address of this message at an edge."""
        return Address(self.life, self.operation, self.nth, edge)


@dataclass
class Recorder:
    """The one writer of a trial's history: numbers, times and writes each event.

    A trial that starts in a restored world goes on with that world's history: give
    its ``events`` and when it ``began`` on the monotonic clock.
    """

    sink: Sink | None = None
    secret: str | None = None
    events: list[Event] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def __call__(self, event: Event) -> Event:
        """Place the event at the end of the history."""
        return self.place(event.model_copy(update={"t": self.seconds()}))

    def place(self, event: Event) -> Event:
        """Place an event that has its time already."""
        placed = event.model_copy(update={"seq": len(self.events)})
        line = to_line(placed)
        if self.secret is not None and self.secret in line:
            line = line.replace(self.secret, BLOT)
            placed = from_line(line)
        self.events.append(placed)
        if self.sink is not None:
            self.sink.write(line + "\n")
        return placed

    def seconds(self) -> float:
        """Seconds since the trial began."""
        return round(time.monotonic() - self.began, 6)


# What is fresh in each run and may stand in a key: UUIDs, ULIDs, clock readings, and
# long words that mix letters with digits.
_FRESH = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?<![0-9A-Za-z])"
    r"(?:(?=[A-Za-z]*[0-9])[0-9A-Za-z]{16,}|[0-9a-fA-F]{16,}|[0-9]{10,})"
    r"(?![0-9A-Za-z])"
)


@dataclass
class FreshNames:
    """Renames what is fresh in each run, in order of first sight.

    The run's id becomes ``{run}``; words that look random become ``{1}``, ``{2}``, so
    that the address of a message is the same in every run. A word that stands in
    ``said``, the scenario's own text, is not fresh however it looks. ``patterns`` are
    of whole keys, with groups around words known to be fresh (`explore.fresh`).
    """

    run_id: str
    known: dict[str, str] = field(default_factory=dict)
    said: str = ""
    patterns: tuple[str, ...] = ()

    def __call__(self, text: str) -> str:
        """The text with its fresh parts renamed."""
        text = text.replace(self.run_id, "{run}")
        for pattern in self.patterns:
            if found := re.fullmatch(pattern, text):
                text = self._rename_groups(found)
        return _FRESH.sub(lambda found: self._rename(found[0]), text)

    def _rename(self, word: str) -> str:
        whole = rf"(?<![0-9A-Za-z]){re.escape(word)}(?![0-9A-Za-z])"
        if re.search(whole, self.said):
            return word
        return self.known.setdefault(word, f"{{{len(self.known) + 1}}}")

    def _rename_groups(self, found: re.Match[str]) -> str:
        parts, at = [], 0
        for number in range(1, len(found.groups()) + 1):
            start, end = found.span(number)
            parts += [found.string[at:start], self._rename(found[number])]
            at = end
        return "".join([*parts, found.string[at:]])


class Gate:
    """See the module's docstring. One gate serves one trial."""

    def __init__(
        self,
        record: Recorder,
        names: FreshNames,
        schedule: Schedule,
        end_life: EndLife,
        watch: Watch | None = None,
    ) -> None:
        self.record = record
        self.names = names
        self.unfired = list(schedule.faults)
        self._armed = True
        self._end_life = end_life
        self._watch = watch
        self._door = asyncio.Lock()
        self._over: set[int] = set()
        self._messages = len(record.events)
        self._counts: Counter[tuple[int, Operation]] = Counter()
        self._in_flight: Counter[int] = Counter()
        self._quiet = asyncio.Condition()

    def arrive(self, life: int, operation: Operation) -> Crossing:
        """Count a whole request.

        Raises:
            Dropped: its life is already over.
        """
        if life in self._over:
            raise Dropped
        if operation.key is not None:
            renamed = self.names(operation.key)
            operation = Operation(operation.service, operation.op, renamed)
        self._counts[life, operation] += 1
        self._messages += 1
        nth = self._counts[life, operation]
        return Crossing(life, operation, nth, self._messages)

    async def cross(
        self, crossing: Crossing, apply: Callable[[], Awaitable[Reply]]
    ) -> Reply:
        """Take a message through both edges; returns what `apply` returned.

        Raises:
            Dropped: the life ended while the message was held.
        """
        self._in_flight[crossing.life] += 1
        try:
            async with self._door:
                await self._edge(crossing.at(Edge.BEFORE))
            async with self._door:
                reply = await apply()
                await self._edge(crossing.at(Edge.AFTER))
            return reply
        finally:
            await self._landed(crossing.life)

    def is_over(self, life: int) -> bool:
        """Whether the life has ended, so that what it still sends is late."""
        return life in self._over

    def close(self, life: int) -> None:
        """From here on the life is over: what arrives from it is dropped."""
        self._over.add(life)

    async def settled(self, life: int) -> None:
        """Wait until no message of a life that is over is on its way."""
        async with self._quiet:
            await self._quiet.wait_for(lambda: not self._in_flight[life])

    def disarm(self) -> None:
        """Let no further fault fire and nobody look; `unfired` stays as it is."""
        self._armed = False
        self._watch = None

    async def _edge(self, address: Address) -> None:
        life = address.life
        assert life is not None
        if life in self._over:
            if address.edge is Edge.AFTER:
                self.record(Crossed(life=life, address=str(address), late=True))
            raise Dropped
        self.record(Crossed(life=life, address=str(address)))
        fault = self._due(address)
        if fault is not None:
            self.record(FaultFired(life=life, fault=str(fault)))
            await self._end(life, "fault")
        elif self._watch is not None and await self._watch(address):
            await self._end(life, "cut")

    async def _end(self, life: int, cause: Cause) -> None:
        self.close(life)
        await self._end_life(life, cause)
        raise Dropped

    def _due(self, address: Address) -> Fault | None:
        if not self._armed:
            return None
        everywhere = address.in_every_life()
        for fault in self.unfired:
            if fault.at in (address, everywhere):
                if fault.at.life is not None:
                    self.unfired.remove(fault)
                return fault
        return None

    async def _landed(self, life: int) -> None:
        async with self._quiet:
            self._in_flight[life] -= 1
            self._quiet.notify_all()
