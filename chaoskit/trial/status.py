"""What the command `status` of a long-lived agent says of the run.

Where it fails, or says anything that is no status, the status is not known yet: a run
that was just submitted may not be there.
"""

from dataclasses import dataclass
from typing import get_args

from chaoskit.model.history import Status, StatusSeen
from chaoskit.trial.lives import Lives
from chaoskit.trial.own_command import SHOWN_MAX, OwnCommands


@dataclass(frozen=True)
class Seen:
    """One answer; ``said`` is what else there was to read."""

    status: Status | None
    answer: str | None = None
    said: str = ""


class StatusLooks:
    """Runs the command as often as asked; what is new goes on record."""

    def __init__(self, lives: Lives, commands: OwnCommands) -> None:
        self._lives = lives
        self._commands = commands
        self._recorded: StatusSeen | None = None
        self.last = Seen(None, said="it was never asked")

    async def look(self, deadline: float) -> Seen:
        """Ask once; ``deadline``, on the trial's clock, is when to give up."""
        ran = await self._commands.run("status", deadline)
        self.last = Seen(None, said=ran.problem) if ran.problem else read(ran.lines)
        return self.last

    def note(self, seen: Seen) -> None:
        """Put it on record, where it is new."""
        event = StatusSeen(life=-1, status=seen.status, said=seen.said)
        if self._recorded is None or event.status != self._recorded.status:
            self._recorded = event
            self._lives.record(event)


def read(said: tuple[str, ...]) -> Seen:
    """The first line is the status, the next one the answer."""
    status = next((word for word in get_args(Status) if said[:1] == (word,)), None)
    if status is None:
        first = repr(said[0][:SHOWN_MAX]) if said else "nothing"
        return Seen(None, said=f"it said {first}")
    return Seen(status, said[1] if len(said) > 1 else None)
