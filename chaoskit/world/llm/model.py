"""The scripted model of one trial: the same for every dialect that asks it.

It counts, places, records, wobbles, and takes each question through the gate. What it
knows of a trial is how many replies it gave, how often each turn was told, and what
later requests may refer to.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from chaoskit.gate import Crossing, Failed, Gate
from chaoskit.model.address import Operation
from chaoskit.model.calls import spoken
from chaoskit.model.history import Asked
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Fault
from chaoskit.wire.json_text import as_text, holds
from chaoskit.wire.place import Made
from chaoskit.wire.said import FRESH_LENGTH, Ids, Said, without_fresh_part
from chaoskit.wire.wobble import calls_at, said_at, ways
from chaoskit.world.http import Answer, Reply, Request, Streamed
from chaoskit.world.llm.dialect import LENGTH, Dialect, Question, Told, Written
from chaoskit.world.llm.key import without_canary


@dataclass(frozen=True)
class Memory:
    """What outlives a restart of the trial: see `Stateful`."""

    replies: int
    told: dict[int, int]
    stored: dict[str, JsonValue]


@dataclass
class Model:
    """See the module's docstring."""

    gate: Gate
    scenario: Scenario
    replies: int = 0
    told: Counter[int] = field(default_factory=Counter)
    stored: dict[str, JsonValue] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)
    _results: set[tuple[str, str]] = field(default_factory=set)

    @property
    def memory(self) -> Memory:
        """All that the model has to remember, as data."""
        return Memory(self.replies, dict(self.told), dict(self.stored))

    def remember(self, memory: Memory) -> None:
        """Go on from there, so that no id is ever given twice in a run."""
        self.replies = memory.replies
        self.told = Counter(memory.told)
        self.stored = dict(memory.stored)

    def view(self) -> JsonValue:
        """In which way each turn would be told next; None where nothing wobbles."""
        shown: dict[str, JsonValue] = {
            str(turn): count % ways(self.scenario.llm, turn)
            for turn, count in sorted(self.told.items())
            if count % ways(self.scenario.llm, turn)
        }
        return shown or None

    async def serve(self, life: int, dialect: Dialect, request: Request) -> Answer:
        """Take a question through the gate; the reply to send."""
        question = dialect.read(request, self.scenario.task.goal, self.stored)
        crossing = self.gate.arrive(life, Operation("llm", dialect.op))
        return await _Exchange(self, dialect, question, crossing).go()

    def record(self, crossing: Crossing, question: Question, whole: int | None) -> None:
        """Write down that this was asked, and what the answer costs.

        ``whole``: after how many pieces of it nothing is missing.
        """
        said = self.say(question)
        asked = Asked(
            life=crossing.life,
            op=crossing.operation.op,
            place=crossing.stem.removesuffix(":"),
            turn=question.place.turn,
            carried=tuple(question.place.carried),
            contents=self._news(question.texts),
            task=any(self.scenario.task.goal in text for text in question.texts),
            rewritten=dict(self._rewritten(question.place.made)),
        )
        if question.refused is not None:
            problem = without_canary(without_fresh_part(str(question.problem)))
            self.gate.record(asked.model_copy(update={"problem": problem}))
            return
        paid_for_each = said.tokens + question.thought_tokens
        paid = {
            "past_end": said.turn >= len(self.scenario.llm.script),
            "whole": whole,
            "prompt_tokens": question.prompt_tokens,
            "completion_tokens": paid_for_each * question.choices,
            "results": self._new_results(question.place.carried),
        }
        self.gate.record(asked.model_copy(update=paid))

    def say(self, question: Question) -> Said:
        """What the answer would be if it were given now."""
        turn = question.place.turn
        return said_at(self.scenario.llm, turn, self.told[turn])

    def tell(self, question: Question) -> Told:
        """Answer: from here on the turn was told once more."""
        said = self.say(question)
        self.told[said.turn] += 1
        return Told(question, said, self.ids(question))

    def ids(self, question: Question) -> Ids:
        """The ids of the next reply."""
        self.replies += 1
        turn = question.place.turn
        choices = range(question.choices)
        return Ids(turn, tuple(self._fresh(turn, choice) for choice in choices))

    def keep(self, written: Written) -> None:
        """Hold what later requests may refer to."""
        self.stored.update(written.stored)

    def _fresh(self, turn: int, choice: int) -> str:
        seed = f"{turn}/{choice}"
        if self.scenario.llm.fresh_ids:
            seed = f"{self.gate.names.run_id}/{self.replies}/{choice}"
        return hashlib.sha256(seed.encode()).hexdigest()[:FRESH_LENGTH]

    def _new_results(self, carried: Mapping[str, str]) -> dict[str, str]:
        """The results that the model was not told in these words before.

        A request that was refused has told it nothing.
        """
        said = {call: without_canary(text) for call, text in carried.items()}
        news = {each for each in said.items() if each not in self._results}
        self._results |= news
        return {call: text for call, text in said.items() if (call, text) in news}

    def _rewritten(
        self, made: Mapping[tuple[int, int], Made]
    ) -> Iterator[tuple[str, str]]:
        """The calls that hold not all that the model had said, as they are told now."""
        for (turn, position), call in made.items():
            own = calls_at(self.scenario.llm, turn, position)
            if not any(call.tool == tool and holds(call.args, a) for tool, a in own):
                yield f"{turn}.{position}", without_canary(_spoken(call))

    def _news(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        """The texts that no earlier request of the trial held; never the canary."""
        said = map(without_canary, texts)
        news = tuple(dict.fromkeys(text for text in said if text not in self._known))
        self._known.update(news)
        return news


def _spoken(call: Made) -> str:
    if isinstance(call.args, dict):
        return spoken(str(call.tool), call.args)
    return f"{call.tool}({as_text(call.args)})"


@dataclass
class _Exchange:
    """One question on its way through the gate."""

    model: Model
    dialect: Dialect
    question: Question
    crossing: Crossing
    told: Told | None = None

    async def go(self) -> Answer:
        written = self._foreseen()
        whole = written.whole if written else None
        pieces = len(written.pieces) if written else None
        self.model.record(self.crossing, self.question, whole)
        try:
            return await self.model.gate.cross(
                self.crossing, self._apply, pieces=pieces
            )
        except Failed as failed:
            return self._failed(failed.fault)

    async def _apply(self) -> Answer:
        if self.question.refused is not None:
            return replace(self.question.refused, crossing=self.crossing)
        self.told = self.model.tell(self.question)
        return self._reply(self.told)

    def _foreseen(self) -> Written | None:
        """The stream that there will be, if it is one, but for its ids."""
        if self.question.refused is not None or not self.question.streamed:
            return None
        fresh = ("0" * FRESH_LENGTH,) * self.question.choices
        ids = Ids(self.question.place.turn, fresh)
        told = Told(self.question, self.model.say(self.question), ids)
        return self.dialect.write(told)

    def _reply(self, told: Told) -> Answer:
        written = self.dialect.write(told)
        self.model.keep(written)
        if not self.question.streamed:
            return Reply(written.body, 200, written.headers, self.crossing)

        def failure(fault: Fault) -> bytes:
            sent = fault.at.edge.part or 0
            return self.dialect.break_off(told, sent, str(fault.chosen))

        return Streamed(written.pieces, self.crossing, failure, headers=written.headers)

    def _failed(self, fault: Fault) -> Answer:
        """The service's own error, or the answer cut short; a refusal stays whole."""
        if fault.chosen != LENGTH:
            ids = self.model.ids(self.question)
            return self.dialect.fail(str(fault.chosen), ids)
        if self.question.refused is not None:
            return self.question.refused
        told = self.told or self.model.tell(self.question)
        return self._reply(replace(told, said=told.said.cut_short()))
