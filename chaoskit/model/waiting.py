"""What a parked run waits for: an open human gate, or a wait that is not over."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from chaoskit.model.address import Address, Edge
from chaoskit.model.history import Asked, Crossed, Event, FaultFired, LifeEnded
from chaoskit.model.schedule import Fault
from chaoskit.model.script import AskTurn, Turn, WaitTurn


def open_turn(history: Sequence[Event], script: Sequence[Turn]) -> int | None:
    """The turn of the gate or the wait that is open at the end of a history.

    It opens when the model's reply that asks for it is sent, and closes when a request
    that carries its result has come to the model. A message that was held when its
    life was killed does neither.
    """
    gates = _Gates(script)
    for event in history:
        gates.take(event)
    return gates.open


def open_turns(
    history: Sequence[Event], script: Sequence[Turn]
) -> Iterator[tuple[Event, int | None]]:
    """Each event of a history, with the turn that was open just before it."""
    gates = _Gates(script)
    for event in history:
        yield event, gates.open
        gates.take(event)


@dataclass
class _Gates:
    script: Sequence[Turn]
    open: int | None = None
    _before_last_crossing: int | None = None
    _counts: Counter[tuple[int, str]] = field(default_factory=Counter)
    _asked: dict[str, Asked] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        match event:
            case Asked():
                self._counts[event.life, event.op] += 1
                nth = self._counts[event.life, event.op]
                # A history that is older than `place` has one life at a time.
                place = event.place or f"{event.life}:llm.{event.op}#{nth}"
                self._asked[place] = event
            case Crossed(late=False):
                self._before_last_crossing = self.open
                self._cross(event.at)
            case FaultFired() if Fault.parse(event.fault).ends_its_life:
                # The door holds one message at a time: the last that crossed.
                self.open = self._before_last_crossing
            case LifeEnded(cause="restored" | "cut"):
                self.open = self._before_last_crossing

    def _cross(self, at: Address) -> None:
        place = str(at.at_edge(Edge.BEFORE)).removesuffix(f":{Edge.BEFORE}")
        asked = self._asked.get(place)
        if at.operation.service != "llm" or asked is None or asked.problem:
            return
        if at.edge == Edge.BEFORE and f"{self.open}.0" in asked.carried:
            self.open = None
        elif at.edge == Edge.AFTER and self._is_gate(asked.turn):
            self.open = asked.turn

    def _is_gate(self, turn: int) -> bool:
        at_end = turn >= len(self.script)
        return not at_end and isinstance(self.script[turn], AskTurn | WaitTurn)
