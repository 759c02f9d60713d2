"""What is put on record of a life: its log as it is read, its end, what it left."""

import signal

from chaoskit.agents import Exit
from chaoskit.agents.output import Output
from chaoskit.gate import Recorder
from chaoskit.model.history import Cause, Ending, LifeEnded, Logged, Wreck
from chaoskit.trial.living import Living
from chaoskit.trial.looks import Looks
from chaoskit.trial.plan import Plan

_IN_ITS_OWN_WAY = ("itself", "asked")


class Account:
    """Writes about the lives of one trial into its history."""

    def __init__(self, plan: Plan, record: Recorder, looks: Looks) -> None:
        self._plan = plan
        self._record = record
        self._looks = looks

    def read_log(self, life: int, output: Output, *, ended: bool = False) -> None:
        """Take in the log lines that were written since the last time."""
        for line in output.new_log_lines(ended=ended):
            entry = {"stream": line.stream, "line": line.line, "entry": line.entry}
            self._record(Logged.model_validate({"life": life, **entry}))

    async def end(self, living: Living, ended: Exit, cause: Cause) -> LifeEnded:
        """Record the end of a life, and the world that it left behind."""
        event = self._ended(living, ended, cause)
        self._record(event)
        await self._look_at_wreck(event)
        return event

    def _ended(self, living: Living, ended: Exit, cause: Cause) -> LifeEnded:
        ending: Ending = "died"
        if living.step.process is not None:
            ending = _of_a_fleet(living, ended, cause)
        elif cause in _IN_ITS_OWN_WAY and ended.signal is None:
            ending = self._meaning(ended.code)
        output = living.output
        return LifeEnded(
            life=living.number,
            cause=cause,
            ending=ending,
            pid=living.process.pid,
            code=ended.code,
            signal=ended.signal,
            orphans=ended.orphans,
            tail=output.tail() if ending != "done" and cause != "fault" else (),
            output=f"{self._plan.name}/{output.stderr.name}",
            process=living.step.process,
        )

    def _meaning(self, code: int | None) -> Ending:
        exits = self._plan.manifest.exits
        if code in exits.done:
            return "done"
        if code in exits.parked:
            return "parked"
        return "failed" if code in exits.failed else "died"

    async def _look_at_wreck(self, end: LifeEnded) -> None:
        """Look after each bad end: a server that has gone is no fault of the agent.

        Where others run on, they change the world meanwhile, and no next life finds
        just this one.
        """
        if end.ending == "done" or end.process is not None:
            return
        view = await self._looks.view(after=end.life)
        if end.ending == "died" and self._plan.canon is not None:
            mark = self._plan.canon.of_run(self._plan.run).fingerprint(view)
            self._record(Wreck(life=end.life, state=mark))


def _of_a_fleet(living: Living, ended: Exit, cause: Cause) -> Ending:
    """What an end means: of a command that brings something, or of one that stays.

    One that stays may end when it has nothing to do, and says so by 0; asked to, it may
    end by that signal; and once its part is over nothing hangs on how it ends.
    """
    if living.step.purpose in ("submit", "answer"):
        is_done = cause in _IN_ITS_OWN_WAY and ended.code == 0
    else:
        gentle = ended.signal in (None, signal.SIGTERM, signal.SIGINT)
        is_done = (
            cause == "stopped"
            or (cause == "asked" and gentle)
            or (cause == "itself" and ended.code == 0)
        )
    return "done" if is_done else "died"
