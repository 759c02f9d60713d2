"""`progress/waits-its-time`: a durable wait ends neither early nor begun anew.

Its time counts from when it was first asked for. This is the one judgement that rests
on times, so it is made where a slow machine cannot turn it, and not at all where the
agent's clock leapt. A timer that its store forgot has to be set anew.
"""

from collections.abc import Iterator

from chaoskit.checks.losses import Losses
from chaoskit.checks.script import asked_turns
from chaoskit.model.history import Asked, ClockLeapt, LifeEnded, LifeStarted
from chaoskit.model.scenario import Scenario, WaitTurn
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding
from chaoskit.model.waiting import open_turns

# Between two clocks of one machine, one of which may be slewed meanwhile.
_EARLY_SECONDS_MAX = 0.02
_LEAPT = (
    "the machine's clock was set, or the machine stood still, while a trial ran: how "
    "long waits took was not judged there"
)
# An agent may keep its times in whole seconds, rounded up.
_LATE_SECONDS_MAX = 1.0


def waits(trial: Trial, scenario: Scenario, losses: Losses) -> Iterator[Finding]:
    """Judge every wait of one trial."""
    script = scenario.llm.script
    due = {n: t.wait for n, t in enumerate(script) if isinstance(t, WaitTurn)}
    if due and not trial.clock_leapt:
        yield from _early(trial, due)
        yield from _begun_anew(trial, scenario, losses, due)


def unjudged(trial: Trial, scenario: Scenario) -> str:
    """Why the waits of a trial were not judged though no fault asked for it."""
    has_waits = any(isinstance(turn, WaitTurn) for turn in scenario.llm.script)
    return _LEAPT if has_waits and any(trial.of(ClockLeapt)) else ""


def _early(trial: Trial, due: dict[int, float]) -> Iterator[Finding]:
    first_asked: dict[int, float] = {}
    for asked in asked_turns(trial.history):
        for turn in [turn for turn in first_asked if f"{turn}.0" in asked.carried]:
            waited = asked.t - first_asked.pop(turn)
            if waited < due[turn] - _EARLY_SECONDS_MAX:
                message = f"was over after {waited:.2f} s"
                yield _finding(turn, due[turn], waited, message, asked.seq)
        if asked.turn in due:
            first_asked.setdefault(asked.turn, asked.t)


def _begun_anew(
    trial: Trial, scenario: Scenario, losses: Losses, due: dict[int, float]
) -> Iterator[Finding]:
    """A life that began when the wait's time was over, and parked for it again.

    The time counts from the end of the last life that asked and was told to wait: by
    then the agent had to know when to go on.
    """
    began = {start.life: start.t for start in trial.of(LifeStarted)}
    newest = {asked.life: asked for asked in asked_turns(trial.history)}
    told: dict[int, tuple[Asked, float]] = {}
    for end, turn in open_turns(trial.history, scenario.llm.script):
        if not isinstance(end, LifeEnded) or turn is None or turn not in due:
            continue
        last = newest.get(end.life)
        if last is not None and last.turn == turn:
            told[turn] = last, end.t
        if turn not in told or losses.between(told[turn][0].seq, end.seq):
            continue
        late = began.get(end.life, 0.0) - told[turn][1] - due[turn]
        if end.ending == "parked" and late > _LATE_SECONDS_MAX:
            message = (
                f"was begun anew: life {end.life}, started {late:.2f} s after it was "
                "over, parked for it again"
            )
            yield _finding(turn, due[turn], due[turn] + late, message, end.seq)
            return


def _finding(turn: int, due: float, waited: float, message: str, seq: int) -> Finding:
    return Finding(
        "progress",
        "progress/waits-its-time",
        f"The wait of turn {turn} was to last {due:g} s and {message}.",
        expected=due,
        observed=round(waited, 2),
        subject=f"turn {turn}",
        events=(seq,),
    )
