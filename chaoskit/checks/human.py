"""`human`: each gate is asked once, and each answer is used once, by its own gate.

An answer counts as used once it has come to the model. Until then it may be brought
again: nobody can tell whether it had arrived.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from chaoskit.checks.case import Case
from chaoskit.checks.losses import Losses
from chaoskit.checks.script import asked_turns
from chaoskit.model.address import Edge
from chaoskit.model.history import (
    Asked,
    Crossed,
    LifeContinued,
    LifeEnded,
    LifeStarted,
)
from chaoskit.model.scenario import AskTurn
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding

PROMISE = "human"
REQUIREMENTS = {
    "human/asked-once": "A gate whose answer has come to the model is not asked again.",
    "human/own-answer": "What the model is told at a gate is the answer to that gate.",
}


@dataclass(frozen=True)
class _Gate:
    """A gate of the script, its answer, and the answers that are not its own."""

    turn: int
    answer: str
    others: tuple[str, ...]

    @property
    def call(self) -> str:
        """Its call, as `Asked.carried` names it."""
        return f"{self.turn}.0"


def check(case: Case) -> Iterator[Finding]:
    """Judge every gate of one trial."""
    for gate in _gates(case):
        if gate.answer in gate.others:
            continue  # of two equal answers nobody can say whose was used
        yield from _own_answer(case, gate)
        if not Losses.of(case.trial, case.scenario):
            yield from _asked_once(case, gate)


def _gates(case: Case) -> Iterator[_Gate]:
    script, answers = case.scenario.llm.script, case.scenario.human
    turns = [turn for turn, each in enumerate(script) if isinstance(each, AskTurn)]
    for number, (turn, answer) in enumerate(zip(turns, answers, strict=False)):
        others = (*answers[:number], *answers[number + 1 :])
        yield _Gate(turn, answer, others)


def _own_answer(case: Case, gate: _Gate) -> Iterator[Finding]:
    for asked in asked_turns(case.trial.history):
        if gate.call not in asked.results:
            continue
        told = asked.results[gate.call]
        starts = (s for s in case.trial.of(LifeStarted) if s.seq < asked.seq)
        brought = any(start.answer == gate.answer for start in starts)
        if brought and _may_be(case, gate, told):
            continue
        whose = f"not {gate.answer!r}" if brought else "and nobody had answered it"
        yield Finding(
            PROMISE,
            "human/own-answer",
            f"The model was told {told!r} as the answer to the gate of turn "
            f"{gate.turn}, {whose}: an answer belongs to the gate that it was given "
            "to.",
            expected=gate.answer,
            observed=told,
            subject=f"turn {gate.turn}",
            events=(asked.seq,),
        )
        return


def _may_be(case: Case, gate: _Gate, told: str) -> bool:
    """Whether that may be what an agent makes of the answer.

    Whoever wraps it in words or JSON still says it. Whoever says it in words of its
    own, such as `approved` for `yes`, says the same in every run; another gate's answer
    is not made right by that.
    """
    if _says(told, gate.answer):
        return True
    if any(_says(told, other) for other in gate.others):
        return False
    usual = case.golden.results.get(gate.call)
    return usual is None or usual == case.without_run(told)


def _says(told: str, answer: str) -> bool:
    return answer in told or json.dumps(answer)[1:-1] in told


def _asked_once(case: Case, gate: _Gate) -> Iterator[Finding]:
    """A life that was paused may ask again what another has asked meanwhile."""
    used = _used(case.trial, gate)
    continued = {event.life for event in case.trial.of(LifeContinued)}
    for asked in asked_turns(case.trial.history):
        if used is None or asked.seq < used.seq or asked.life in continued:
            continue
        if asked.turn == gate.turn and (again := _put_to_a_person(case, gate, asked)):
            yield _found_again(gate, used, again)
            return


def _used(trial: Trial, gate: _Gate) -> Crossed | None:
    """Where the answer had come to the model: its request was not held before that."""
    carriers: set[int] = set()
    for event in trial.history:
        match event:
            case Asked(problem=None) if gate.call in event.carried:
                carriers.add(event.life)
            case Crossed() if event.life in carriers:
                if event.at.operation.service == "llm" and event.at.edge != Edge.BEFORE:
                    return event
    return None


def _put_to_a_person(
    case: Case, gate: _Gate, asked: Asked
) -> LifeStarted | LifeEnded | None:
    """How a person came to see a gate that a life had asked the model for again."""
    for event in case.trial.history[asked.seq + 1 :]:
        match event:
            case LifeStarted() if event.answer == gate.answer:
                return event
            case LifeEnded(cause="itself", ending="parked") if not case.trial.is_fleet:
                return event
            case Asked(problem=None) if event.turn != gate.turn:
                return None
    return None


def _found_again(gate: _Gate, used: Crossed, again: LifeStarted | LifeEnded) -> Finding:
    """A gate that was put to the human a second time."""
    how = "parked for it once more"
    if isinstance(again, LifeStarted):
        how = "was started with its answer once more"
    return Finding(
        PROMISE,
        "human/asked-once",
        f"The gate of turn {gate.turn} was asked again (life {again.life} {how}) after "
        f"its answer had come to the model (event {used.seq}): a person is asked once.",
        expected="one question, one answer",
        observed="a second question",
        subject=f"turn {gate.turn}",
        events=(used.seq, again.seq),
    )
