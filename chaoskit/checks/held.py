"""Which call a fault struck: the one whose message was held just then.

The event says so by the message's number. Where it does not, as of old, the delivery is
the newest of its tool in that life; a mail, which names no tool, is the newest of its
life. It may be another one where two calls came at once and one waited for the door.
"""

from dataclasses import dataclass, field

from chaoskit.model.history import Delivered, FaultFired
from chaoskit.model.schedule import Fault
from chaoskit.model.services import MAIL


@dataclass
class Held:
    """The deliveries of a history, as far as it was read."""

    _sent: dict[int, Delivered] = field(default_factory=dict)
    _newest: dict[tuple[int, str], Delivered] = field(default_factory=dict)

    def see(self, delivery: Delivered) -> None:
        """Take in the next one."""
        self._sent[delivery.message] = delivery
        self._newest[delivery.life, delivery.tool] = delivery
        self._newest[delivery.life, MAIL] = delivery

    def by(self, fired: FaultFired) -> Delivered | None:
        """The delivery that a fault struck; None if it was no call."""
        if fired.message is not None:
            return self._sent.get(fired.message)
        return self._newest.get((fired.life, Fault.parse(fired.fault).at.operation.op))
