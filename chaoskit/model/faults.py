"""The closed set of faults, and where each may strike.

The set is closed on purpose: a fault is data that can be written in a schedule,
saved and replayed, never code that a user runs inside the harness.
"""

from enum import StrEnum


class FaultKind(StrEnum):
    """What happens to the agent or the world at a crossing."""

    KILL = "kill"
    """SIGKILL to the whole process group while the message is held."""
