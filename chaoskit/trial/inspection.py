"""What the agent's command `inspect` prints: what the next life would read back.

It is run after each death and before the next life can heal anything, where the run
rests, and at the end. Its time is none of the trial's, and where nobody else is at the
stores, what it does there is undone: to open a database is to change its files.
"""

import json
from typing import Literal

from chaoskit.model.history import Inspected
from chaoskit.trial.lives import Lives
from chaoskit.trial.own_command import LATE, SHOWN_MAX, OwnCommands
from chaoskit.trial.patience import Patience

EXPECTED = '{"checkpoint_id": ..., "status": ..., "transcript": [...]}'


class Inspection:
    """Looks into the store of one trial, where the manifest says how."""

    def __init__(self, lives: Lives, commands: OwnCommands) -> None:
        self._lives = lives
        self._commands = commands
        self._is_locked_out = False

    async def look(self, when: Literal["death", "rest", "end"], after: int) -> None:
        """Put on record what is stored after a life.

        A look that waits in vain beside a life that is paused, for its lock perhaps,
        would wait as long each time: the next is taken once that life is over.
        """
        lives, plan = self._lives, self._lives.plan
        is_alone = not lives.company.others(-1)
        if plan.manifest.inspect is None or (self._is_locked_out and not is_alone):
            return
        own = Patience()  # the trial's is held, and would never be over
        deadline = own.now() + plan.scenario.limits.life_seconds
        with lives.patience.held():
            async with lives.sheltered():
                ran = await self._commands.run("inspect", deadline, own)
        self._is_locked_out = ran.problem == LATE and not is_alone
        lives.record(
            Inspected(life=-1, when=when, after=after, problem=ran.problem)
            if ran.problem
            else read(ran.lines, when, after)
        )


def read(
    lines: tuple[str, ...], when: Literal["death", "rest", "end"], after: int
) -> Inspected:
    """The last line is what counts: a JSON object."""
    last = lines[-1] if lines else ""
    try:
        said = json.loads(last)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        shown = repr(last[:SHOWN_MAX]) if last else "nothing"
        problem = f"it said {shown}; expected {EXPECTED}"
        return Inspected(life=-1, when=when, after=after, problem=problem)
    number, status = said.get("checkpoint_id"), said.get("status")
    is_whole = isinstance(number, int) and not isinstance(number, bool)
    return Inspected(
        life=-1,
        when=when,
        after=after,
        checkpoint_id=number if is_whole else None,
        status=status if isinstance(status, str) else None,
        transcript=said.get("transcript"),
    )
