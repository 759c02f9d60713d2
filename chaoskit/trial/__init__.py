"""One schedule, one trial: lives are started, struck and started again, to the end.

`plan` is what a trial is told, `run` plays it, life after life; `course` decides what
follows a life; `living` is one life in play, `strikes` what faults do to it, `company`
knows which lives are open, `account` puts on record what becomes of one; `looks` keeps
the worlds that are passed, `command` says how a life is started.
"""

from pathlib import Path

from chaoskit.agents import Launcher
from chaoskit.gate import Recorder
from chaoskit.model.schedule import Schedule
from chaoskit.model.visit import Visited
from chaoskit.trial.blots import blots
from chaoskit.trial.command import inherited_environment
from chaoskit.trial.fleet import Fleet
from chaoskit.trial.plan import Plan, Watching
from chaoskit.trial.run import Run
from chaoskit.world import World

__all__ = ["Plan", "Watching", "blots", "inherited_environment", "run_trial"]


async def run_trial(
    plan: Plan, world: World, launcher: Launcher, folder: Path
) -> Visited:
    """Run one trial to its end; its history and output go to ``folder``, a new one.

    Whatever it raises, no life of it goes on, and the world can take the next trial.

    Raises:
        LaunchError: the agent's command cannot be started.
        ConnectionError: a server of the world went away.
    """
    folder.mkdir(parents=True)
    _note(plan.path, folder)
    # Buffered by the line: what has happened can be read while a life hangs.
    with (folder / "history.jsonl").open("w", 1, encoding="utf-8") as sink:
        record = Recorder(sink, blots=blots(plan.manifest, plan.scenario))
        kind = Fleet if plan.manifest.processes else Run
        visited = await kind(plan, world, launcher, folder, record).play()
    if plan.visit.tread is not None:
        _note(visited.trial.schedule, folder)
    return visited


def _note(schedule: Schedule, folder: Path) -> None:
    (folder / "schedule.txt").write_text(f"{schedule}\n", encoding="utf-8")
