"""What a check judges: one trial, and what its outcome is held against."""

from dataclasses import dataclass

from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import Scenario
from chaoskit.model.trial import Trial


@dataclass(frozen=True)
class Golden:
    """What the fault-free runs of a campaign agree on; None where they do not, or
    where there was none.
    """

    answer: str | None = None


NOTHING = Golden()


@dataclass(frozen=True)
class Case:
    """One trial before the checks."""

    trial: Trial
    scenario: Scenario
    manifest: Manifest
    golden: Golden = NOTHING
