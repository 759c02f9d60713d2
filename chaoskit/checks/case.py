"""What a check judges: one trial, and the fault-free runs that it is held against."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from chaoskit.model.history import Asked
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import Scenario
from chaoskit.model.trial import Trial


@dataclass(frozen=True)
class Golden:
    """What the fault-free runs of a campaign agree on; the rest is left out.

    ``answer`` is the final answer, ``last_turn`` the last one that the model was asked
    for, ``results`` the texts of the results that it was told, by call. The run's id
    reads `{run}` in each of them. ``tells_task``: each request holds the task;
    ``tells_calls``: each tells the model's calls as it made them.
    """

    answer: str | None = None
    last_turn: int | None = None
    results: Mapping[str, str] = field(default_factory=dict)
    tells_task: bool = False
    tells_calls: bool = False

    @classmethod
    def of(cls, first: Trial, second: Trial) -> "Golden":
        """What two runs agree on."""
        one, other = _Shown(first), _Shown(second)
        return cls(
            one.answer if one.answer == other.answer else None,
            one.last_turn if one.last_turn == other.last_turn else None,
            dict(sorted(one.results.items() & other.results.items())),
            one.tells_task and other.tells_task,
            one.tells_calls and other.tells_calls,
        )


NOTHING = Golden()


@dataclass(frozen=True)
class Case:
    """One trial before the checks."""

    trial: Trial
    scenario: Scenario
    manifest: Manifest
    golden: Golden = NOTHING

    def without_run(self, text: str) -> str:
        """A text that two runs can be compared by."""
        return text.replace(self.trial.run_id, "{run}")


class _Shown:
    """What one run has shown."""

    def __init__(self, trial: Trial) -> None:
        def plain(text: str) -> str:
            return text.replace(trial.run_id, "{run}")

        said = trial.ended.answer if trial.ended.outcome == "done" else None
        self.answer = None if said is None else plain(said)
        answered = [e for e in trial.of(Asked) if e.problem is None]
        self.last_turn = max((e.turn for e in answered), default=None)
        self.tells_task = bool(answered) and all(e.task for e in answered)
        self.tells_calls = bool(answered) and not any(e.rewritten for e in answered)
        told = (each for e in answered for each in e.results.items())
        self.results = {call: plain(text) for call, text in told}
