"""`progress`: the run ends, and never goes back over what the model has seen.

It must end within its lives and seconds: done; parked only for a reason; failed only
for a cause that is allowed. A call whose result has gone to the model is not delivered
again. A wait is neither cut short nor begun anew. Resumed once more after ``done``, the
agent asks nothing and does nothing; and the status of one that is long-lived stays as
it is.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from chaoskit.checks.case import Case
from chaoskit.checks.doubt import calls_in_doubt, deaths
from chaoskit.checks.losses import Losses
from chaoskit.checks.script import Group, Script, name_of
from chaoskit.checks.setbacks import keeps, takes_back
from chaoskit.checks.takeover import sent_unaware
from chaoskit.checks.waits import waits
from chaoskit.model.calls import identity, spoken
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import (
    Applied,
    Asked,
    Delivered,
    Event,
    FaultFired,
    LifeEnded,
    LifeStarted,
    StatusSeen,
)
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import Scenario, WaitTurn
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding
from chaoskit.model.waiting import open_turn

PROMISE = "progress"
REQUIREMENTS = {
    "progress/ends": "The run ends within its lives and seconds.",
    "progress/parks-for-a-reason": (
        "A run parks for an open gate, a wait or a call in doubt only."
    ),
    "progress/fails-for-a-reason": "A run fails for a cause that is allowed only.",
    "progress/not-again": (
        "A call whose result has gone to the model is not delivered again."
    ),
    "progress/waits-its-time": (
        "A wait ends at its time: not early, and not begun anew."
    ),
    "progress/stops-at-the-end": (
        "The model is asked nothing once it has given its final answer."
    ),
    "progress/resume-after-done": (
        "Resumed after `done`, the agent exits 0, asks nothing and does nothing."
    ),
    "progress/stays-over": "A status that is final stays as it is.",
}


def check(case: Case) -> Iterator[Finding]:
    """Judge how the run went on and how it ended."""
    trial, scenario, manifest = case.trial, case.scenario, case.manifest
    script, losses = Script(scenario), Losses.of(trial, scenario)
    yield from _ending(trial, script, manifest, losses)
    yield from _delivered_again(trial, script, _Known(manifest, losses))
    yield from waits(trial, scenario, losses)
    yield from _past_the_end(trial, scenario)
    yield from _after_done(trial, losses)
    if not losses:
        yield from _stays_over(trial)


def _ending(
    trial: Trial, script: Script, manifest: Manifest, losses: Losses
) -> Iterator[Finding]:
    ended = trial.ended
    # What a store has forgotten may be past all recovery: then to say so is right, and
    # so is it to park at a gate that was open then, or for a call in doubt again.
    may_fail = bool(losses) or _may_fail(trial, script, manifest)
    if ended.outcome == "endless" and not never_let_to_end(trial, script):
        yield _ended_badly(
            trial, "progress/ends", f"The run never ends: {ended.reason}"
        )
    elif ended.outcome == "parked" and not losses:
        waits = open_turn(trial.history, script.scenario.llm.script) is not None
        if not waits and not calls_in_doubt(trial, script, manifest, parked=True):
            message = "The run parked with no open gate, no wait and no call in doubt"
            yield _ended_badly(trial, "progress/parks-for-a-reason", message)
    elif ended.outcome == "failed" and not may_fail:
        yield _ended_badly(trial, "progress/fails-for-a-reason", _why_not(trial))


def _why_not(trial: Trial) -> str:
    """Why a failure is not allowed."""
    asked = {end.life for end in trial.of(LifeEnded) if end.cause == "asked"}
    if trial.ended.life in asked:
        return "The run failed because it was asked to end; it must stop or go on"
    return "The run failed, and nothing that happened to it allows that"


def never_let_to_end(trial: Trial, script: Script) -> str:
    """Why no agent could have ended such a run, or nothing."""
    if _struck_to_the_end(trial):
        return _STRUCK_TO_THE_END
    clock = (f for f in _fired(trial) if f.kind is FaultKind.SKEW)
    is_behind = sum(float(fault.chosen or 0) for fault in clock) < 0
    turns = script.scenario.llm.script
    turn = open_turn(trial.history, turns) if is_behind else None
    waits = turn is not None and isinstance(turns[turn], WaitTurn)
    return _CLOCK_SET_BACK if waits else ""


_STRUCK_TO_THE_END = (
    "the scheduled fault strikes in every life, and struck until the trial's time was "
    "up: the run was never let to end"
)
_CLOCK_SET_BACK = (
    "the clock was set back by more than the trial's time, in which no wait can end"
)


def _struck_to_the_end(trial: Trial) -> bool:
    """Whether a fault that strikes in every life struck until the time was up."""
    ends = [end for end in trial.of(LifeEnded) if end.cause != "stopped"]
    everywhere = any(fault.at.life is None for fault in trial.schedule.faults)
    if len(ends) > 1 and _had_no_time(ends[-1], trial):
        ends.pop()
    if not ends or not everywhere:
        return False
    return ends[-1].cause in ("fault", "asked") or _died_of_a_fault(ends[-1], trial)


def _had_no_time(end: LifeEnded, trial: Trial) -> bool:
    """Whether the trial's time was up before a life could have come to the fault.

    It hung if it took more than twice as long as any life that was struck.
    """
    began = {start.life: start.t for start in trial.of(LifeStarted)}
    fired = [event for event in trial.of(FaultFired) if event.life in began]
    struck = [event.t - began[event.life] for event in fired]
    took = end.t - began.get(end.life, end.t)
    return end.cause == "limit" and took <= 2 * max(struck, default=-1.0)


def _died_of_a_fault(end: LifeEnded, trial: Trial) -> bool:
    """Whether a life died by itself, and a message of it had been spoilt."""
    spoilt = (
        f.life for f in trial.of(FaultFired) if Fault.parse(f.fault).spoils_its_message
    )
    return end.cause == "itself" and end.ending == "died" and end.life in spoilt


def _fired(trial: Trial) -> Iterator[Fault]:
    return (Fault.parse(event.fault) for event in trial.of(FaultFired))


def _may_fail(trial: Trial, script: Script, manifest: Manifest) -> bool:
    limit = manifest.contract.max_attempts
    most = max(_attempts_at_one_call(trial, script), _deaths_in_a_row(trial))
    gave_up = limit is not None and most >= limit
    told_to = any(fault.is_final for fault in _fired(trial))
    return gave_up or told_to or bool(calls_in_doubt(trial, script, manifest))


def _attempts_at_one_call(trial: Trial, script: Script) -> int:
    """The most attempts that came to nothing at one operation.

    Those are deaths there, or while one call had no result yet, and errors.
    """
    died = {end.life for end in trial.of(LifeEnded) if end.ending == "died"}
    struck = ((event.life, Fault.parse(event.fault)) for event in trial.of(FaultFired))
    at = Counter(
        str(fault.at.operation)
        for life, fault in struck
        if life in died or fault.spoils_its_message
    )
    during = Counter(name for names in deaths(trial, script) for name in names)
    return max((at | during).values(), default=0)


def _deaths_in_a_row(trial: Trial) -> int:
    """The most lives in a row that died and brought the run no further.

    An agent sees one place at which it loses life after life, whichever message each of
    them died at. To come further is to have a call made, or to do something about the
    reply to a new turn: one that only asked may have got nothing.
    """
    turns: set[int] = set()
    asked: set[int] = set()
    further: set[int] = set()
    for event in trial.history:
        match event:
            case Asked() if event.turn not in turns:
                turns.add(event.turn)
                further |= asked & {event.life}
                asked.add(event.life)
            case Delivered() if event.life in asked:
                further.add(event.life)
            case Applied(first=True):
                further.add(event.life)
    most = row = 0
    for end in trial.of(LifeEnded):
        row = 0 if end.ending != "died" else 1 if end.life in further else row + 1
        most = max(most, row)
    return most


def _ended_badly(trial: Trial, requirement: str, message: str) -> Finding:
    lives = [end for end in trial.of(LifeEnded) if _tells_why(trial, end)]
    last = lives[-1] if lives else None
    ended = trial.ended
    return Finding(
        PROMISE,
        requirement,
        f"{message}.{_last_words(last)}",
        expected="done",
        observed=ended.outcome,
        events=((ended.seq,) if last is None else (last.seq, ended.seq)),
    )


def _tells_why(trial: Trial, end: LifeEnded) -> bool:
    """Whether the run ended as it did with that life, or for the same reason."""
    if trial.is_fleet:
        return end.cause in ("itself", "limit") and end.ending == "died"
    return end.cause != "fault"


def _last_words(end: LifeEnded | None) -> str:
    if end is None:
        return ""
    if end.cause == "limit":
        how = "was ended at its time limit"
    elif end.signal is not None:
        how = f"died of signal {end.signal}"
    else:
        how = f"exited with {end.code}"
    said = "".join(f"\n    {line}" for line in end.tail) or " nothing"
    name = f" ({end.process})" if end.process else ""
    return f" Life {end.life}{name} {how}; its log is {end.output}; it last said:{said}"


def _delivered_again(
    trial: Trial, script: Script, known: "_Known"
) -> Iterator[Finding]:
    """Deliveries that no call could be for which the model still waits.

    What the life after ``done`` does is judged by itself; and a life that was paused
    learns only from the store that another has taken over.
    """
    told, unaware = set(), sent_unaware(trial)
    for event in trial.history:
        known.take(event)
        if not isinstance(event, Delivered) or event.life in trial.again:
            continue
        group = script.groups.get(identity(event))
        if group is None or group.identity in told or event.seq in unaware:
            continue
        if known.is_over(group):
            told.add(group.identity)
            yield _again(event, group, trial.spoken(event.life))


@dataclass
class _Known:
    """What the model has seen, and the agent must know of.

    What the store forgot has to be done again, and so has what a crash may take back.
    """

    manifest: Manifest
    losses: Losses
    issued: int = -1
    carried: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    """What no crash takes back."""

    def take(self, event: Event) -> None:
        if takes_back(event, self.manifest):
            self.carried &= self.kept
        elif keeps(event, self.manifest):
            self.kept |= self.carried
        match event:
            case FaultFired() if any(loss.seq == event.seq for loss in self.losses):
                self._forget()
            case LifeStarted() if self.losses.found_by(event):
                self._forget()
            case Asked(problem=None):
                self.issued = max(self.issued, event.turn)
                self.carried |= set(event.carried)

    def _forget(self) -> None:
        self.carried.clear()
        self.kept.clear()

    def is_over(self, group: Group) -> bool:
        """Whether the model has the results of all calls that it asked for."""
        calls = {name_of(call) for call in group.calls if call.turn <= self.issued}
        return bool(calls) and calls <= self.carried


def _again(event: Delivered, group: Group, life: str) -> Finding:
    return Finding(
        PROMISE,
        "progress/not-again",
        f"{spoken(event.tool, event.args)} was delivered again in {life}, after a "
        "request to the model had carried its result.",
        expected="no delivery of a call that the model has the result of",
        observed=f"a delivery in {life}",
        subject=str(group),
        events=(event.seq,),
    )


def _past_the_end(trial: Trial, scenario: Scenario) -> Iterator[Finding]:
    for asked in trial.of(Asked):
        if asked.past_end and asked.life not in trial.again:
            yield Finding(
                PROMISE,
                "progress/stops-at-the-end",
                f"{trial.spoken(asked.life).capitalize()} asked the model again after "
                "its last word: the script ends at turn "
                f"{len(scenario.llm.script) - 1}.",
                expected="no request after the last turn",
                observed=f"turn {asked.turn}",
                events=(asked.seq,),
            )
            return


def _after_done(trial: Trial, losses: Losses) -> Iterator[Finding]:
    starts = (start for start in trial.of(LifeStarted) if start.purpose == "again")
    start = next(starts, None)
    if start is None or losses.found_by(start):
        return  # it cannot know that it was done
    did = [
        event
        for event in trial.history
        if isinstance(event, Asked | Delivered) and event.life in trial.again
    ]
    if did:
        what = ", ".join(map(_deed, did))
        yield _not_idle(trial, what, f"it {what}", tuple(event.seq for event in did))
        return
    ends = (end for end in trial.of(LifeEnded) if end.life in trial.again)
    for end in (end for end in ends if end.ending != "done"):
        yield _not_idle(trial, end.ending, _last_words(end).strip(), (end.seq,))
        return


def _stays_over(trial: Trial) -> Iterator[Finding]:
    """A long-lived agent goes on to say how the run has ended, whatever happens.

    What a store forgot may be done again, and says so meanwhile.
    """
    over: StatusSeen | None = None
    for seen in trial.of(StatusSeen):
        if over is not None and seen.status != over.status:
            now = seen.status or f"nothing that is a status: {seen.said}"
            yield Finding(
                PROMISE,
                "progress/stays-over",
                f"The run's status was {over.status}, and then {now}: once a run is "
                "over it stays so.",
                expected=over.status,
                observed=seen.status,
                events=(over.seq, seen.seq),
            )
            return
        if seen.status in ("done", "failed"):
            over = seen


def _deed(event: Asked | Delivered) -> str:
    if isinstance(event, Asked):
        return f"asked the model for turn {event.turn}"
    return f"called {spoken(event.tool, event.args)}"


def _not_idle(
    trial: Trial, observed: str, story: str, events: tuple[int, ...]
) -> Finding:
    how = "wait for other runs" if trial.is_fleet else "exit with 0"
    return Finding(
        PROMISE,
        "progress/resume-after-done",
        f"Resumed once more after it was done, the agent must {how}, ask nothing "
        f"and do nothing; {story}",
        expected=f"to {how}, no request, no call",
        observed=observed,
        events=events,
    )
