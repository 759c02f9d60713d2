"""`human`: each gate is asked once, and each answer is used once, by its own gate.

An answer counts as used once it has come to the model. Until then it may be brought
again: nobody can tell whether it had arrived.
"""

import json
from collections.abc import Iterator

from chaoskit.checks.case import Case
from chaoskit.checks.losses import Losses
from chaoskit.checks.script import asked_turns
from chaoskit.model.history import Asked, LifeStarted
from chaoskit.model.scenario import AskTurn
from chaoskit.model.verdict import Finding

PROMISE = "human"
REQUIREMENTS = {
    "human/asked-once": "A gate whose answer has come to the model is not asked again.",
    "human/own-answer": "What the model is told at a gate is the answer to that gate.",
}


def check(case: Case) -> Iterator[Finding]:
    """Judge every gate of one trial."""
    script = case.scenario.llm.script
    gates = [turn for turn, each in enumerate(script) if isinstance(each, AskTurn)]
    for turn, answer in zip(gates, case.scenario.human, strict=False):
        yield from _own_answer(case, turn, answer)
        # Of two equal answers nobody can say which was brought again.
        is_unlike = case.scenario.human.count(answer) == 1
        if is_unlike and not Losses.of(case.trial, case.scenario):
            yield from _asked_once(case, turn, answer)


def _own_answer(case: Case, turn: int, answer: str) -> Iterator[Finding]:
    """Whoever wraps an answer in words of its own still says it."""
    trial, gate = case.trial, f"{turn}.0"
    for asked in asked_turns(trial.history):
        if gate not in asked.results:
            continue
        told = asked.results[gate]
        brought = any(
            start.seq < asked.seq and start.answer == answer
            for start in trial.of(LifeStarted)
        )
        if brought and (answer in told or json.dumps(answer)[1:-1] in told):
            continue
        whose = f"not {answer!r}" if brought else "and nobody had answered it"
        yield Finding(
            PROMISE,
            "human/own-answer",
            f"The model was told {told!r} as the answer to the gate of turn {turn}, "
            f"{whose}: an answer belongs to the gate that it was given to.",
            expected=answer,
            observed=told,
            subject=f"turn {turn}",
            events=(asked.seq,),
        )
        return


def _asked_once(case: Case, turn: int, answer: str) -> Iterator[Finding]:
    used: Asked | None = None
    for asked in asked_turns(case.trial.history):
        if used is not None and asked.turn == turn and asked.life > used.life:
            starts = (s for s in case.trial.of(LifeStarted) if s.seq > asked.seq)
            if again := next((s for s in starts if s.answer == answer), None):
                yield _found_again(turn, used, again)
                return
        if used is None and f"{turn}.0" in asked.carried:
            used = asked


def _found_again(turn: int, used: Asked, again: LifeStarted) -> Finding:
    """A gate that was put to the human a second time."""
    return Finding(
        PROMISE,
        "human/asked-once",
        f"The gate of turn {turn} was asked again, and had to be answered again for "
        f"life {again.life}, after its answer had come to the model (event "
        f"{used.seq}): a person is asked once.",
        expected="one question, one answer",
        observed="a second answer",
        subject=f"turn {turn}",
        events=(used.seq, again.seq),
    )
