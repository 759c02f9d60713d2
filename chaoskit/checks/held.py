"""Which call a fault struck: the one whose message was held just then.

A fault strikes while a message is held, so its delivery is the newest of its tool in
that life; a mail, which names no tool, is the newest of its life.
"""

from dataclasses import dataclass, field

from chaoskit.model.history import Delivered
from chaoskit.model.schedule import Fault
from chaoskit.model.services import MAIL


@dataclass
class Held:
    """The newest deliveries of a history, as far as it was read."""

    _newest: dict[tuple[int, str], Delivered] = field(default_factory=dict)

    def see(self, delivery: Delivered) -> None:
        """Take in the next one."""
        self._newest[delivery.life, delivery.tool] = delivery
        self._newest[delivery.life, MAIL] = delivery

    def by(self, life: int, fault: Fault) -> Delivered | None:
        """The delivery that a fault of that life struck; None if it was no call."""
        return self._newest.get((life, fault.at.operation.op))
