"""States of the world: what a crash leaves behind, and what is remembered about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from chaoskit.model.history import History
from chaoskit.model.schedule import Schedule

View = Mapping[str, JsonValue]
"""What a look at the world shows, as JSON: one entry per service, and the memory."""


@dataclass(frozen=True)
class WorldState:
    """The world at one crossing, whole, so that another life can be started in it.

    ``path`` is the schedule of kills whose last one, at this crossing, leaves this
    world; ``prefix`` is the history up to it. ``services`` holds what each stateful
    service gave as its snapshot; it means something to that service only. ``names`` are
    the fresh words renamed so far; ``began`` is the trial's start on the monotonic
    clock, which all processes of a machine share.
    """

    path: Schedule
    life: int
    run_id: str
    began: float
    prefix: History
    view: View
    services: Mapping[str, object] = field(repr=False)
    names: Mapping[str, str] = field(repr=False)
