"""Whether what a saved trial says of its faults is what its history shows.

`trial.json` names the faults that never struck. That is not taken on trust: which ones
struck is in the history. A campaign excuses some that did not, those at a beat that
did not come (see `explore.beats`), and names the operation as periodic in its report.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from chaoskit.campaign.reading import SavedCampaign
from chaoskit.model.history import FaultFired
from chaoskit.model.scenario import Strategy
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial

EXCUSING = (Strategy.SWEEP, Strategy.TREADMILL, Strategy.SAMPLE)
"""The strategies that excuse a beat; what others name has to fire."""


def misfits(trial: Trial, campaign: SavedCampaign) -> Iterator[str]:
    """What does not fit together, in words; such a trial proves nothing."""
    for problem in dict.fromkeys(_problems(trial, campaign)):
        yield (
            f"trial {trial.name} does not fit together: {problem}; its trial.json or "
            "its history is not what a campaign wrote, so run the campaign again"
        )


def _problems(trial: Trial, campaign: SavedCampaign) -> Iterator[str]:
    scheduled, struck = Counter(trial.schedule.faults), _struck(trial)
    missing, told = _missing(scheduled, struck), Counter(trial.unfired)
    excuses = _Excuses(trial, campaign)
    for fault in missing - told:
        if not excuses.cover(fault):
            yield f"{fault} is scheduled, and by its history never struck"
    for fault in told - missing:
        yield f"{fault} is said never to have struck, and by its history is not due"
    for fault, times in struck.items():
        if times > scheduled[fault] and not (_is_lasting(fault) and scheduled[fault]):
            yield f"{fault} struck {times} times, which is not what was scheduled"


def _struck(trial: Trial) -> Counter[Fault]:
    return Counter(Fault.parse(event.fault) for event in trial.of(FaultFired))


def _missing(scheduled: Counter[Fault], struck: Counter[Fault]) -> Counter[Fault]:
    """One for every life stays due: it struck, or it never did."""
    left = scheduled - struck
    met = [fault for fault in left if _is_lasting(fault) and struck[fault]]
    for fault in met:
        del left[fault]
    return left


def _is_lasting(fault: Fault) -> bool:
    return fault.at.life is None


@dataclass(frozen=True)
class _Excuses:
    """Which faults a campaign may have excused."""

    trial: Trial
    campaign: SavedCampaign

    def cover(self, fault: Fault) -> bool:
        """Whether it was at a beat, or behind one, and did not come by."""
        if fault.at in self.trial.addresses:
            return False
        faults = self.trial.schedule.faults
        return any(map(self._is_beat, faults[: faults.index(fault) + 1]))

    def _is_beat(self, fault: Fault) -> bool:
        if fault.at.nth == 1:
            return False
        report = self.campaign.report
        if report is None:  # a campaign that was cut short is no pass anyway
            return self.campaign.only is None
        known = str(fault.at.operation) in report.periodic
        return known and report.strategy in EXCUSING
