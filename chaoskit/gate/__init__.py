"""The door that every message crosses: it counts, records and decides.

A service that has read a whole request lets it `arrive`, notes what it knows about it,
and hands `cross` the function that applies it::

    crossing = gate.arrive(life, Operation("tools", "charge_card", "o-1"))
    gate.record(Delivered(...))
    reply = await gate.cross(crossing, apply)

`cross` returns the reply to send; or raises `Dropped`: the service resets the
connection without a word, since the life is over or a fault cut it; or raises `Failed`:
the service answers with the error that the fault names. There are three rules.

1. A fault strikes while the message is held. The agent waits for an answer that will
   not come, so a kill needs no timer and cannot miss.
2. The world changes inside the door only, one message at a time. Whoever looks at the
   world from inside (a snapshot) sees the work of whole messages.
3. When a life ends, a message that had not passed ``before`` is dropped; one that had
   is applied, recorded as late, and not answered. A real network does the same.

Of an agent that is many processes each has a number of its own, by which the gate knows
whose a message is and whose end drops it. Their addresses share one: the *generation*,
which counts the deaths among them, and `Census` knows.

The gate may not know agents: whoever builds it hands it `end_life` and `strike`. Nor
does it know services: one that a fault can do something to is the message's `Host`.
"""

from chaoskit.gate.blots import BLOT, Blots, forms
from chaoskit.gate.door import (
    Census,
    Choose,
    Crossing,
    Dropped,
    EndLife,
    Endpoint,
    Failed,
    Gate,
    Host,
    Strike,
    Watch,
    Whose,
)
from chaoskit.gate.names import FreshNames
from chaoskit.gate.recorder import Recorder

__all__ = [
    "BLOT",
    "Blots",
    "Census",
    "Choose",
    "Crossing",
    "Dropped",
    "EndLife",
    "Endpoint",
    "Failed",
    "FreshNames",
    "Gate",
    "Host",
    "Recorder",
    "Strike",
    "Watch",
    "Whose",
    "forms",
]
