"""`human`: each gate is asked once, and each answer is used once, by its own gate.

An answer counts as used once it has come to the model. Until then it may be brought
again: nobody can tell whether it had arrived. Nor is it held against an agent that a
gate is asked again where its contract says that a crash takes that step back.

Of two equal answers nobody can say which of them was used; but that fewer were given
than gates were told of, anybody can.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from chaoskit.checks.case import Case
from chaoskit.checks.losses import Losses
from chaoskit.checks.script import asked_turns
from chaoskit.checks.setbacks import keeps, takes_back
from chaoskit.model.address import Edge
from chaoskit.model.history import (
    Asked,
    Crossed,
    Event,
    LifeContinued,
    LifeEnded,
    LifeStarted,
)
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import AskTurn
from chaoskit.model.verdict import Finding

PROMISE = "human"
REQUIREMENTS = {
    "human/asked-once": "A gate whose answer has come to the model is not asked again.",
    "human/own-answer": "What the model is told at a gate is the answer to that gate.",
}


@dataclass(frozen=True)
class _Gate:
    """A gate of the script, its answer, and the answers that are not its own.

    ``number``: it is the so-many-th gate with this answer; ``alone``: the only one.
    """

    turn: int
    answer: str
    others: tuple[str, ...]
    number: int
    alone: bool

    @property
    def call(self) -> str:
        """Its call, as `Asked.carried` names it."""
        return f"{self.turn}.0"


def check(case: Case) -> Iterator[Finding]:
    """Judge every gate of one trial."""
    for gate in _gates(case):
        yield from _own_answer(case, gate)
        if not Losses.of(case.trial, case.scenario):
            yield from _asked_once(case, gate)


def _gates(case: Case) -> Iterator[_Gate]:
    script, answers = case.scenario.llm.script, case.scenario.human
    turns = [turn for turn, each in enumerate(script) if isinstance(each, AskTurn)]
    for number, (turn, answer) in enumerate(zip(turns, answers, strict=False)):
        others = tuple(each for each in answers if each != answer)
        before, alone = answers[:number].count(answer), answers.count(answer) == 1
        yield _Gate(turn, answer, others, before + 1, alone)


def _own_answer(case: Case, gate: _Gate) -> Iterator[Finding]:
    for asked in asked_turns(case.trial.history):
        if gate.call not in asked.results:
            continue
        told = asked.results[gate.call]
        starts = [s for s in case.trial.of(LifeStarted) if s.seq < asked.seq]
        given = sum(start.answer == gate.answer for start in starts)
        brought = given >= gate.number
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
    if any(_has_word(told, other) for other in gate.others):
        return False
    usual = case.golden.results.get(gate.call)
    return usual is None or usual == case.without_run(told)


def _says(told: str, answer: str) -> bool:
    return answer in told or json.dumps(answer)[1:-1] in told


def _has_word(told: str, answer: str) -> bool:
    """Whether an answer stands there by itself: `no` is not said in `note`."""
    return bool(answer and re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", told))


def _asked_once(case: Case, gate: _Gate) -> Iterator[Finding]:
    """A life that was paused may ask again what another has asked meanwhile."""
    use = _Use(case.manifest, gate)
    continued = {event.life for event in case.trial.of(LifeContinued)}
    for event in case.trial.history:
        use.take(event)
        if use.seen is None or event.life in continued:
            continue
        if again := _put_to_a_person(case, gate, event):
            yield _found_again(gate, use.seen, again)
            return


@dataclass
class _Use:
    """Where a gate's answer had come to the model, as long as the run must know it.

    Its request was not held before that, and no crash has taken the step back.
    """

    manifest: Manifest
    gate: _Gate
    seen: Crossed | None = None
    kept: bool = False
    carriers: set[int] = field(default_factory=set)

    def take(self, event: Event) -> None:
        match event:
            case Asked(problem=None) if self.gate.call in event.carried:
                self.carriers.add(event.life)
            case Crossed() if self.seen is None and event.life in self.carriers:
                self._cross(event)
        if takes_back(event, self.manifest) and not self.kept:
            self.seen = None
            self.carriers.clear()
        elif keeps(event, self.manifest):
            self.kept = self.kept or self.seen is not None

    def _cross(self, crossed: Crossed) -> None:
        at = crossed.at
        if at.operation.service == "llm" and at.edge != Edge.BEFORE:
            self.seen = crossed


def _put_to_a_person(
    case: Case, gate: _Gate, asked: Event
) -> LifeStarted | LifeEnded | None:
    """How a person came to see a gate that a life had asked the model for again.

    Of equal answers nobody can say for which of their gates one was brought.
    """
    if not isinstance(asked, Asked) or asked.problem or asked.turn != gate.turn:
        return None
    for event in case.trial.history[asked.seq + 1 :]:
        match event:
            case LifeStarted() if gate.alone and event.answer == gate.answer:
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
