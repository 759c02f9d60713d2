"""What one trial is told."""

from dataclasses import dataclass
from pathlib import Path

from chaoskit.explore.fingerprint import Canon
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.model.visit import Visit


@dataclass(frozen=True)
class Watching:
    """What to make of the worlds that a trial passes.

    Without a ``canon`` every look is kept (a baseline, from which one is learned);
    with one, only worlds not in ``known``, and a recovery ends at a known one unless
    ``thorough``. ``snapshots``: keep the worlds whole, not just a view of them.
    """

    canon: Canon | None = None
    known: frozenset[str] = frozenset()
    snapshots: bool = False
    thorough: bool = False


@dataclass(frozen=True)
class Plan:
    """Everything that one trial needs to know.

    ``name`` is its folder in the campaign's output. ``canon``, once it is known, gives
    each death's wreck its fingerprint; ``fresh`` are patterns of keys that are fresh in
    each run (see `chaoskit.gate.FreshNames`).
    """

    name: str
    visit: Visit
    scenario: Scenario
    manifest: Manifest
    agent_folder: Path
    run_id: str
    canon: Canon | None = None
    watching: Watching | None = None
    fresh: tuple[str, ...] = ()

    @property
    def run(self) -> str:
        """The run's id: a recovery goes on with the run that it recovers."""
        return self.visit.origin.run_id if self.visit.origin else self.run_id

    @property
    def path(self) -> Schedule:
        """Every fault of the run, those that led to the origin included."""
        return self.visit.origin.path if self.visit.origin else self.visit.schedule
