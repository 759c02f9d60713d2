"""What the command `status` of a long-lived agent says of the run.

It is a look of the harness's own, so no crossing of it is counted or recorded (see
`chaoskit.gate.Gate.arrive`). Where it fails, or says anything else, the status is not
known yet: a run that was just submitted may not be there.
"""

from dataclasses import dataclass
from typing import get_args

from chaoskit.agents.output import Output, log_entry
from chaoskit.model.history import Status, StatusSeen
from chaoskit.model.manifest import LogNames
from chaoskit.trial.course import Step
from chaoskit.trial.lives import Lives
from chaoskit.trial.living import Living

_KNOWN: tuple[str, ...] = get_args(Status)
_SHOWN_MAX = 200


@dataclass(frozen=True)
class Seen:
    """One answer; ``said`` is what else there was to read."""

    status: Status | None
    answer: str | None = None
    said: str = ""


class StatusLooks:
    """Runs the command as often as asked; what is new goes on record."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives
        self._number = 0
        self._recorded: StatusSeen | None = None
        self.last = Seen(None, said="it was never asked")

    async def look(self, deadline: float) -> Seen:
        """Ask once; ``deadline``, on the trial's clock, is when to give up."""
        self._number -= 1
        life, step, lives = self._number, Step("resume", process="status"), self._lives
        try:
            living = await lives.begin(life, step, deadline)
            ended, cause = await lives.wait(living, _is_never_paused)
        finally:
            await lives.close(life)
        await lives.settle(living)
        if cause == "limit":
            seen = Seen(None, said="it did not end in time")
        elif ended.code != 0:
            how = f"signal {ended.signal}" if ended.code is None else ended.code
            seen = Seen(None, said=f"it ended with {how}: {_last(living.output)}")
        else:
            seen = read(living.output, lives.plan.manifest.log)
        self.last = seen
        return seen

    def note(self, seen: Seen) -> None:
        """Put it on record, where it is new."""
        event = StatusSeen(life=-1, status=seen.status, said=seen.said)
        if self._recorded is None or event.status != self._recorded.status:
            self._recorded = event
            self._lives.record(event)


def read(output: Output, names: LogNames) -> Seen:
    """The first line that is no log line is the status, the next one the answer."""
    text = output.stdout.read_bytes().decode(errors="backslashreplace")
    lines = [line.strip() for line in text.split("\n")]
    said = [line for line in lines if line and log_entry(line, names) is None]
    status = next((word for word in get_args(Status) if said[:1] == [word]), None)
    if status is None:
        first = repr(said[0][:_SHOWN_MAX]) if said else "nothing"
        return Seen(None, said=f"it said {first}")
    return Seen(status, said[1] if len(said) > 1 else None)


def _last(output: Output) -> str:
    return " / ".join(output.tail()[-2:])[:_SHOWN_MAX] or "it said nothing"


async def _is_never_paused(living: Living) -> None:
    raise AssertionError(f"a fault met the look {living.number}")
