"""Faults that found nothing to strike, and the trials that made up for them.

Which calls are on their way when a life dies is a race of the agent's own: it may have
one to make once more, or none, and a fault that was laid at that call in a later life
then finds nothing. So a search runs such a schedule again, and what counts is whether
all of it struck at last. Not where a store was to be struck: a message that is another
one from run to run, a heartbeat say, would only be hidden by that.
"""

from collections.abc import Iterable

from chaoskit.checks import Judgement, never_fired
from chaoskit.model.scenario import Strategy
from chaoskit.model.schedule import Schedule
from chaoskit.model.services import STORES
from chaoskit.model.trial import Trial

TRIES_MAX = 4
"""So often a schedule is run, until all of it has struck."""
TRYING = (Strategy.SWEEP, Strategy.SAMPLE)
"""The strategies that try again; what others name has to strike at once."""


def is_a_race(trial: Trial) -> bool:
    """Whether what a trial has missed may be there in the next one."""
    missed = [fault.at.operation.service for fault in trial.unfired]
    return bool(missed) and not set(missed) & set(STORES)


def made_good(trials: Iterable[Trial]) -> frozenset[Schedule]:
    """The schedules that struck whole in one of these trials at least."""
    return frozenset(trial.schedule for trial in trials if not trial.unfired)


def doubts_left(
    trial: Trial, judgement: Judgement, good: frozenset[Schedule]
) -> tuple[str, ...]:
    """The doubts of a trial but for those that another one has made good."""
    if trial.schedule not in good or not is_a_race(trial):
        return judgement.doubts
    missed = set(map(never_fired, trial.unfired))
    return tuple(doubt for doubt in judgement.doubts if doubt not in missed)
