"""Faults that found nothing to strike, and the trials that made up for them.

Which calls are on their way when a life dies is a race of the agent's own: it may have
one to make once more, or none, and a fault that was laid at that call in a later life
then finds nothing. And a life of several threads may end by itself between a message
and the kill that it was to die of. So a search runs such a schedule again, and what
counts is whether all of it struck at last. Not where a store was to be struck and was
not: a message that is another one from run to run, a heartbeat say, would only be
hidden by that.
"""

from collections.abc import Iterable, Iterator

from chaoskit.checks import Judgement, never_fired
from chaoskit.model.history import FaultFired, LifeEnded
from chaoskit.model.scenario import Strategy
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.services import STORES
from chaoskit.model.trial import SIGKILL, Trial

TRIES_MAX = 4
"""So often a schedule is run, until all of it has struck."""
TRYING = (Strategy.SWEEP, Strategy.SAMPLE)
"""The strategies that try again; what others name has to strike at once."""


def is_a_race(trial: Trial) -> bool:
    """Whether what a trial has missed may be there in the next one."""
    missed = {fault.at.operation.service for fault in trial.unfired}
    return not missed & set(STORES) and (bool(missed) or any(too_late(trial)))


def too_late(trial: Trial) -> Iterator[str]:
    """Kills whose life did not die of the signal, in words."""
    fired = ((e.life, Fault.parse(e.fault)) for e in trial.of(FaultFired))
    killed = {life for life, fault in fired if fault.ends_its_life}
    for end in trial.of(LifeEnded):
        by_fault = end.cause == "fault" and end.life in killed
        if by_fault and end.signal != SIGKILL:
            how = f"signal {end.signal}" if end.code is None else f"code {end.code}"
            yield (
                f"{trial.spoken(end.life)} of trial {trial.name} was to be killed and "
                f"ended with {how} before that came"
            )


def made_good(trials: Iterable[Trial]) -> frozenset[Schedule]:
    """The schedules that struck whole in one of these trials at least."""
    return frozenset(
        trial.schedule
        for trial in trials
        if not trial.unfired and not any(too_late(trial))
    )


def doubts_left(
    trial: Trial, judgement: Judgement, good: frozenset[Schedule] = frozenset()
) -> tuple[str, ...]:
    """The doubts of a trial but for those that another one has made good."""
    late = tuple(too_late(trial))
    if trial.schedule not in good or not is_a_race(trial):
        return (*judgement.doubts, *late)
    missed = set(map(never_fired, trial.unfired))
    return tuple(doubt for doubt in judgement.doubts if doubt not in missed)
