"""A look of the harness's own, by a command of the agent's: `status`, `inspect`.

No crossing of it is counted or recorded, and no fault meets it (see
`chaoskit.gate.Gate.arrive`).
"""

from dataclasses import dataclass

from chaoskit.agents.output import Output, log_entry
from chaoskit.trial.course import Step
from chaoskit.trial.lives import Lives
from chaoskit.trial.living import Living
from chaoskit.trial.patience import Patience

SHOWN_MAX = 200
LATE = "it did not end in time"


@dataclass(frozen=True)
class Ran:
    """What a command printed, but for log lines; or why that is worth nothing."""

    lines: tuple[str, ...] = ()
    problem: str = ""


class OwnCommands:
    """Runs them, each as a life below 0."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives
        self._number = 0

    async def run(
        self, process: str, deadline: float, patience: Patience | None = None
    ) -> Ran:
        """Run one; ``deadline`` is when to give up, on the trial's clock or another."""
        self._number -= 1
        life, step, lives = self._number, Step("resume", process=process), self._lives
        try:
            living = await lives.begin(life, step, deadline, patience)
            ended, cause = await lives.wait(living, _is_never_paused)
        finally:
            await lives.close(life)
        await lives.settle(living)
        if cause == "limit":
            return Ran(problem=LATE)
        lines = self._lines(living.output)
        if ended.code != 0:
            how = f"signal {ended.signal}" if ended.code is None else ended.code
            return Ran(lines, f"it ended with {how}: {_last(living.output)}")
        return Ran(lines)

    def _lines(self, output: Output) -> tuple[str, ...]:
        """What stands on standard output, but for blank lines and log lines."""
        names = self._lives.plan.manifest.log
        text = output.stdout.read_bytes().decode(errors="backslashreplace")
        lines = (line.strip() for line in text.split("\n"))
        return tuple(ln for ln in lines if ln and log_entry(ln, names) is None)


def _last(output: Output) -> str:
    return " / ".join(output.tail()[-2:])[:SHOWN_MAX] or "it said nothing"


async def _is_never_paused(living: Living) -> None:
    raise AssertionError(f"a fault met the look {living.number}")
