"""The course of a run: what follows a life, another one or the end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from chaoskit.gate import Recorder
from chaoskit.model.history import Asked, FaultFired, LifeEnded, Purpose, RunEnded
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import AskTurn, Scenario, WaitTurn
from chaoskit.model.waiting import open_turn
from chaoskit.trial.patience import Patience

SECONDS_BETWEEN_RESUMES = 1.0


@dataclass(frozen=True)
class Step:
    """How the run goes on: which command, with which answer.

    ``at`` is the earliest moment for it, on the monotonic clock; ``process`` the name
    of one of a long-lived agent's.
    """

    purpose: Purpose
    at: float = 0.0
    answer: str | None = None
    process: str | None = None


class Course:
    """Supervises one run, as whoever operates the agent would.

    ``unending``: a fault strikes in every life, so that time alone ends the run.
    """

    def __init__(
        self,
        scenario: Scenario,
        manifest: Manifest,
        patience: Patience,
        *,
        unending: bool = False,
    ) -> None:
        self._scenario = scenario
        self._script = scenario.llm.script
        self._lives_max = manifest.contract.max_lives
        self._patience = patience
        self._deadline = patience.now() + scenario.limits.trial_seconds
        self._since = patience.now()
        self._is_unending = unending
        self._deaths = 0
        self._answered: int | None = None

    def after(self, end: LifeEnded, record: Recorder) -> Step | RunEnded:
        """What follows a life that ended so, at the end of that history."""
        life = end.life
        self._take_time_of(end)
        if end.cause == "cut":
            reason = "a world that is already known"
            return RunEnded(life=life, outcome="cut", reason=reason)
        if end.ending == "done":
            return RunEnded(life=life, outcome="done")
        if end.ending == "failed":
            return RunEnded(life=life, outcome="failed", reason="the agent gave it up")
        self._deaths += end.ending == "died" and not _was_struck(end, record)
        step = self._unpark(record) if end.ending == "parked" else Step("resume")
        if step is None:
            return RunEnded(life=life, outcome="parked", reason="nothing is due")
        if endless := self._endless():
            return RunEnded(life=life, outcome="endless", reason=endless)
        if step.purpose != "answer":
            self._answered = None
        return step

    def _take_time_of(self, end: LifeEnded) -> None:
        """A life that a scheduled fault ended does not use up the trial's time.

        Else how many a schedule may end would depend on the machine's speed.
        """
        now = self._patience.now()
        if end.cause == "fault" and not self._is_unending:
            self._deadline += now - self._since
        self._since = now

    @contextmanager
    def on_trial(self) -> Iterator[None]:
        """While a life is paused: that others cannot go on is not held against them."""
        deaths = self._deaths
        yield
        self._deaths = deaths

    def seconds_until(self, step: Step) -> float:
        """How long to wait before a step; never beyond the trial's own time."""
        left = self._deadline - self._patience.now()
        return max(0.0, min(step.at - time.monotonic(), left))

    def deadline_for(self, step: Step) -> float:
        """Until when, on the trial's clock, a life may take.

        The one after ``done`` has its full time.
        """
        end = self._patience.now() + self._scenario.limits.life_seconds
        return end if step.purpose == "again" else min(end, self._deadline)

    def _endless(self) -> str:
        """Why the run is given up, or nothing."""
        if self._patience.now() >= self._deadline:
            limit = self._scenario.limits.trial_seconds
            return f"it had not ended after {limit:g} s"
        if self._deaths > self._lives_max:
            return f"{self._deaths} lives ended that no scheduled fault had ended"
        return ""

    def _unpark(self, record: Recorder) -> Step | None:
        """How a parked run goes on, or None if nothing will ever wake it."""
        turn = open_turn(record.events, self._script)
        if turn is None:
            return None
        return self._bring_answer(turn) or self._end_wait(turn, record)

    def _bring_answer(self, turn: int) -> Step | None:
        """The answer to a gate; None where the turn is none.

        One that a life has just parked again with is not brought again at once.
        """
        gates = [n for n, t in enumerate(self._script) if isinstance(t, AskTurn)]
        if turn not in gates:
            return None
        at = _soon() if self._answered == turn else 0.0
        self._answered = turn
        return Step("answer", at, self._scenario.human[gates.index(turn)])

    def _end_wait(self, turn: int, record: Recorder) -> Step:
        """The life that goes on, at a time by which no wait can be too short.

        An agent counts from when it was told, a little after it asked; by the end of
        the life that was told it did. Else it were a race whether it has to park again.
        """
        wait = self._script[turn]
        assert isinstance(wait, WaitTurn)
        told = {
            e.life for e in record.events if isinstance(e, Asked) and e.turn == turn
        }
        ends = (e for e in record.events if isinstance(e, LifeEnded))
        last = max((end.t for end in ends if end.life in told), default=0.0)
        due = record.began + last + wait.wait
        return Step("resume", at=due if due > time.monotonic() else _soon())


def _was_struck(end: LifeEnded, record: Recorder) -> bool:
    """Whether a scheduled fault ended a life, or it ended itself when one had struck.

    Each fault excuses the end of one life, so none goes on without an end.
    """
    if end.cause in ("fault", "asked"):
        return True
    return any(isinstance(e, FaultFired) and e.life == end.life for e in record.events)


def _soon() -> float:
    return time.monotonic() + SECONDS_BETWEEN_RESUMES
