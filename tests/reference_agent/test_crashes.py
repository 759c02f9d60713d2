"""A run that is cut off anywhere, and cut off again, applies each call once.

In-process and exhaustive: every edge of every outside call and save is tried, and every
pair of them. The real kills are in `test_life`; these find what they would miss.
"""

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from json import dumps
from typing import Any

import pytest

from reference_agent import checkpoint, one_shot
from reference_agent.effects import Effect, NoLookUp
from reference_agent.logs import Log
from reference_agent.loop import Services
from reference_agent.model_client import ModelTrouble
from reference_agent.state import Phase, State, Status
from reference_agent.stop import Stop
from reference_agent.stores.base import NOW, Due, Fenced, Held, decode, encode
from reference_agent.tools import TOOLS, Promise
from reference_agent.transitions import ATTEMPTS_MAX, LIVES_MAX, Outcome, Reply

Script = list[list[tuple[str, dict[str, Any]]]]

MAIL = ("send_mail", {"to": "ann", "subject": "hi", "body": "x"})
PAY = ("charge_card", {"order": "o-1", "cents": 3})
FAX = ("send_fax", {"to": "hotel", "body": "x"})
BOOK: Script = [[("search_flights", {"to": "NYC"})], [PAY, PAY], [MAIL, MAIL], [MAIL]]
SHORT: Script = [[PAY, MAIL], [MAIL]]
FAXES: Script = [[FAX, FAX]]
GATES: Script = [
    [PAY, ("ask_human", {"question": "Again?"}), PAY],
    [("ask_human", {"question": "Sure?"})],
    [MAIL],
]
WAITS: Script = [[("wait", {"seconds": 3}), PAY], [("wait", {"seconds": 0.5})]]


class Killed(BaseException):
    """The process is gone; nothing of it may run on."""


@dataclass
class World:
    """Store, model and tools; it cuts the run off at chosen edges, counted from 1."""

    script: Script
    cuts: tuple[int, ...] = ()
    edges: int = 0
    document: str | None = None
    token: int = 0
    takes: int = 0
    time: float = 1000.0
    endpoints: int = 1
    applied: list[tuple[str, str, str]] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)

    def edge(self) -> None:
        self.edges += 1
        if self.edges in self.cuts:
            raise Killed

    def now(self) -> float:
        return self.time

    def create(self, run_id: str, document: dict[str, Any]) -> bool:
        self.edge()
        if self.document is not None:
            return False
        self.document = encode(document)
        self.edge()
        return True

    def load(self, run_id: str) -> Held | None:
        if self.document is None:
            return None
        return Held(decode(self.document), self.token, None, self.takes)

    def take(
        self, run_id: str, owner: str, seconds: float, *, over: str | None = None
    ) -> Held | None:
        self.edge()
        self.token += 1
        self.takes += 1
        self.edge()
        return self.load(run_id)

    def save(
        self,
        run_id: str,
        token: int,
        document: dict[str, Any],
        *,
        wake_at: float | None = NOW,
        keep: bool = True,
    ) -> None:
        self.edge()
        if token != self.token:
            raise Fenced
        self.document, self.takes = encode(document), 0
        self.edge()

    def release(self, run_id: str, token: int) -> None:
        self.edge()

    def due(self) -> Sequence[Due]:
        return ()

    def wait(self, seconds: float) -> None:
        raise AssertionError("nobody waits here")

    def close(self) -> None:
        """Nothing is open."""

    def ask(
        self,
        messages: tuple[dict[str, Any], ...],
        *,
        run_id: str,
        step: int,
        endpoint: int,
    ) -> Reply:
        self.edge()
        turn = sum(1 for m in messages if m["role"] == "assistant")
        self.asked.append(turn)
        self.edge()
        message: dict[str, Any] = {"role": "assistant", "content": "Booked."}
        if turn < len(self.script):
            message["tool_calls"] = [
                {
                    "id": f"{self.edges}.{position}",
                    "function": {"name": tool, "arguments": dumps(arguments)},
                }
                for position, (tool, arguments) in enumerate(self.script[turn])
            ]
        return Reply(f"c{self.edges}", message, 7, 3)

    def do(self, tool: str, arguments: dict[str, Any], key: str) -> Outcome:
        self.edge()
        known = [k for _, _, k in self.applied]
        if key not in known or TOOLS[tool].promise is not Promise.KEYED:
            self.applied.append((tool, dumps(arguments), key))
        self.edge()
        return Outcome("ok", applied=True)

    def done(self, tool: str, arguments: dict[str, Any]) -> list[Effect]:
        self.edge()
        if TOOLS[tool].promise is not Promise.QUERYABLE:
            raise NoLookUp
        wanted = (tool, dumps(arguments))
        found = [effect for effect in self.applied if effect[:2] == wanted]
        return [Effect("ok", applied=True) for _ in found]

    def counts(self) -> Counter[str]:
        return Counter(tool for tool, _, _ in self.applied)


@dataclass
class Overtaken(World):
    """While one brings an answer, another has brought one: `first`."""

    first: str | None = None

    def take(
        self, run_id: str, owner: str, seconds: float, *, over: str | None = None
    ) -> Held | None:
        if self.first is not None:
            words, self.first = self.first, None
            one_shot.answer(run_id, words, None, services_in(self))
        return super().take(run_id, owner, seconds, over=over)


@dataclass
class Outage(World):
    """The model is away."""

    def ask(self, messages: tuple[dict[str, Any], ...], **_: Any) -> Reply:
        self.edge()
        raise ModelTrouble("it answered 503", passing=True)


@dataclass
class Witness(World):
    """Looks into the store at each outside call: what is in there is what a life that
    dies over this call leaves."""

    checkpoints: list[int] = field(default_factory=list)

    def stored(self) -> State:
        state = checkpoint.load(decode(self.document or ""))
        self.checkpoints.append(state.checkpoint_id)
        return state

    def ask(
        self,
        messages: tuple[dict[str, Any], ...],
        *,
        run_id: str,
        step: int,
        endpoint: int,
    ) -> Reply:
        state = self.stored()
        assert (state.phase, state.step) == (Phase.CALL_LLM, step)
        assert state.messages == messages
        assert state.prompt_hash == checkpoint.fingerprint(messages)
        return super().ask(messages, run_id=run_id, step=step, endpoint=endpoint)

    def do(self, tool: str, arguments: dict[str, Any], key: str) -> Outcome:
        state = self.stored()
        assert state.phase is Phase.TOOL
        assert key_of(state) == key
        assert [done.key for done in state.completed] == [k for *_, k in self.applied]
        return super().do(tool, arguments, key)


class Naps(Stop):
    """Notes how long it was asked to rest, and lets that time pass."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.naps: list[float] = []

    def nap(self, seconds: float) -> bool:
        self.naps.append(seconds)
        self.world.time += max(0.0, seconds)
        return True


def services_in(world: World, stop: Stop | None = None) -> Services:
    log = Log(io.StringIO())
    return Services(world, world, world, TOOLS, log, stop or Stop(), "me", 60.0)


def live(world: World, stop: Stop | None = None) -> State:
    return one_shot.go_on("r1", "goal", services_in(world, stop), resumes=True)


def survive(script: Script, cuts: tuple[int, ...]) -> tuple[State, World]:
    """Life after life; a gate gets its answer, a wait its time."""
    world, gates = World(script, cuts), iter(["yes", "sure"])
    answers: dict[str, str] = {}
    for _ in range(len(cuts) + 5):
        with suppress(Killed):
            state = go_on(world, answers, gates)
            if state.resume_at is not None:
                world.time = state.resume_at
            elif is_gate(state):
                gate = key_of(state)
                answers[gate] = answers.get(gate) or next(gates)
            else:
                return state, world
    raise AssertionError("more deaths than cuts")


def go_on(world: World, answers: dict[str, str], gates: Iterator[str]) -> State:
    """As a supervisor does: with the answer, where one is waited for and known."""
    held = world.load("r1")
    state = None if held is None else checkpoint.load(held.document)
    if state is None or not is_gate(state) or key_of(state) not in answers:
        return live(world)
    services = services_in(world)
    answer = answers[key_of(state)]
    one_shot.answer("r1", answer, None, services)
    return live(world)


def is_gate(state: State) -> bool:
    return state.phase is Phase.REVIEW and "wait" in (state.reason or "")


def key_of(state: State) -> str:
    assert state.pending is not None
    return state.pending.key


def edges_of(script: Script) -> int:
    return survive(script, ())[1].edges


def single_cuts(script: Script) -> list[tuple[int, ...]]:
    return [(edge,) for edge in range(1, edges_of(script) + 1)]


def pairs_of_cuts(script: Script) -> list[tuple[int, ...]]:
    """A recovery may cross a few edges more than a run that nothing happens to."""
    return list(combinations(range(1, edges_of(script) + 9), 2))


def check_endings(script: Script, cuts: list[tuple[int, ...]]) -> None:
    """They ended as the run did that nothing happened to."""
    calm = survive(script, ())
    for these in cuts:
        check_ending(calm, survive(script, these), len(these))


def check_ending(
    calm_run: tuple[State, World], run: tuple[State, World], cuts: int
) -> None:
    (whole, calm), (state, world) = calm_run, run
    assert (state.status, state.answer) == (Status.DONE, "Booked.")
    for tool, count in calm.counts().items():
        if TOOLS[tool].promise is not Promise.READ:
            assert world.counts()[tool] == count
    assert [d.key for d in state.completed] == [d.key for d in whole.completed]
    assert len(state.messages) == len(whole.messages)
    assert state.checkpoint_id == whole.checkpoint_id  # they rise by one over lives
    # Only a reply that was lost before it was stored is asked for again, and at once.
    assert sorted(set(world.asked)) == calm.asked == sorted(calm.asked)
    assert world.asked == sorted(world.asked)
    assert len(world.asked) <= len(calm.asked) + cuts


def test_cut_off_anywhere_it_ends_as_if_nothing_had_happened() -> None:
    check_endings(BOOK, single_cuts(BOOK))


def test_cut_off_again_while_it_recovers_too() -> None:
    check_endings(SHORT, pairs_of_cuts(SHORT))


def test_a_stored_reply_is_never_asked_for_again() -> None:
    """A reply that is in the store when the run is cut off is not paid for twice."""
    for cuts in single_cuts(BOOK):
        world = World(BOOK, cuts)
        with suppress(Killed):
            live(world)
        stored = 0 if world.document is None else answers_in(world.document)
        asked = len(world.asked)
        live(world)
        assert world.asked[asked:] == list(range(stored, len(BOOK) + 1))


def answers_in(document: str) -> int:
    return len(checkpoint.load(decode(document)).model_calls)


def test_each_outside_call_finds_its_intent_stored_and_all_results_before_it() -> None:
    """A save before each question, before each tool and after each, reads included and
    between the calls of one turn too; the reply has one of its own."""
    world = Witness([*BOOK, *FAXES])
    state = live(world)
    assert state.status is Status.DONE
    assert [done.key for done in state.completed] == [key for *_, key in world.applied]
    asked, calls = len(world.asked), len(world.applied)
    assert (asked, calls) == (6, 8)
    # Kept; each question, each reply before it is acted on, each call; and the end
    # comes in the write that acts on the last reply.
    assert state.checkpoint_id == 1 + 2 * asked + calls + 1
    assert len(set(world.checkpoints)) == asked + calls


def test_a_blind_call_in_doubt_parks_and_is_never_done_twice() -> None:
    endings = Counter[Status]()
    for cuts in single_cuts(FAXES) + pairs_of_cuts(FAXES):
        state, world = survive(FAXES, cuts)
        endings[state.status] += 1
        assert world.counts()["send_fax"] <= 2
        if state.status is Status.DONE:
            assert world.counts() == {"send_fax": 2}, cuts
        else:
            assert state.status is Status.PARKED
            assert state.reason == "send_fax may have been done, and it cannot be asked"
    assert endings[Status.DONE] > 0
    assert endings[Status.PARKED] > 0


def test_a_gate_is_asked_once_and_answered_once_wherever_the_run_is_cut_off() -> None:
    for cuts in single_cuts(GATES) + pairs_of_cuts(GATES)[::7]:
        state, world = survive(GATES, cuts)
        asked = [d for d in state.completed if d.tool == "ask_human"]
        assert [(d.key, d.result) for d in asked] == [
            ("r1/1/1/ask_human", "yes"),
            ("r1/2/0/ask_human", "sure"),
        ]
        assert state.status is Status.DONE
        assert world.counts() == {"charge_card": 2, "send_mail": 1}


def test_an_answer_that_came_second_answers_nothing() -> None:
    """Not even the next question, which is not asked yet."""
    world = Overtaken([[("ask_human", {"question": q}) for q in ("Pay?", "Sure?")]])
    assert live(world).status is Status.PARKED
    world.first = "yes"
    with pytest.raises(one_shot.UsageError, match="no open question"):
        one_shot.answer("r1", "no", None, services_in(world))
    state = live(world)
    assert [done.result for done in state.completed] == ["yes"]
    assert state.status is Status.PARKED


def test_a_wait_is_neither_lost_nor_begun_anew_wherever_the_run_is_cut_off() -> None:
    """Its time counts from the reply that asked for it; the clock stands between."""
    for cuts in single_cuts(WAITS) + pairs_of_cuts(WAITS)[::5]:
        state, world = survive(WAITS, cuts)
        assert state.status is Status.DONE
        assert world.time == 1003.5
        assert world.counts() == {"charge_card": 1}


def test_a_wait_counts_from_its_reply_wherever_a_life_was_lost_before_it() -> None:
    for cuts in single_cuts(WAITS):
        world = World(WAITS, cuts)
        with suppress(Killed):
            live(world)
        if world.document is None or answers_in(world.document) != 1:
            continue
        world.cuts = ()
        world.time += 5
        assert live(world).completed[0].key == "r1/1/0/wait", cuts


def in_doubt() -> list[World]:
    """A run for each way to be in doubt about the first of two faxes."""
    runs = [survive(FAXES, cuts) for cuts in single_cuts(FAXES)]
    found = [world for state, world in runs if state.status is Status.PARKED]
    assert {world.counts()["send_fax"] for world in found} == {0, 1, 2}
    return [world for world in found if world.counts()["send_fax"] < 2]


def test_an_answer_that_decides_nothing_leaves_the_call_in_doubt() -> None:
    for world in in_doubt():
        with pytest.raises(one_shot.UsageError, match="'done' or 'not done'"):
            one_shot.answer("r1", "perhaps", None, services_in(world))
        assert live(world).status is Status.PARKED


def test_a_person_says_what_became_of_a_call_in_doubt() -> None:
    """Whoever looked knows: it is sent again if it was not done, and only then."""
    for world in in_doubt():
        pending = checkpoint.load(decode(world.document or "")).pending
        assert pending is not None
        first = pending.key == "r1/1/0/send_fax"
        was_done = world.counts()["send_fax"] == (1 if first else 2)
        answer = "done" if was_done else "not done"
        one_shot.answer("r1", answer, None, services_in(world))
        state = live(world)
        assert (state.status, world.counts()["send_fax"]) == (Status.DONE, 2)


@pytest.mark.parametrize("script", [BOOK, FAXES])
def test_a_run_that_has_ended_is_left_alone(script: Script) -> None:
    for cuts in [(), (edges_of(script) - 8,)]:
        state, world = survive(script, cuts)
        before = (world.document, len(world.applied), len(world.asked))
        assert live(world).status is state.status
        assert (world.document, len(world.applied), len(world.asked)) == before


def test_an_outage_that_does_not_end_fails_the_run_after_bounded_attempts() -> None:
    """They are counted over lives: the one that is cut off does not start anew."""
    world = Outage(BOOK, cuts=(15,))  # after the third attempt was stored
    naps = Naps(world)
    with suppress(Killed):
        live(world, naps)
    assert world.document is not None
    assert checkpoint.load(decode(world.document)).attempts == 3
    state = live(world, naps)
    assert state.status is Status.FAILED
    reason = f"gave up after {ATTEMPTS_MAX} attempts: the model: it answered 503"
    assert state.reason == reason
    assert naps.naps == [0.25 * 2**n for n in range(ATTEMPTS_MAX - 1)]


def test_a_run_that_costs_life_after_life_is_set_aside() -> None:
    """Poison: each life that takes it is lost; others must not wait for it for ever."""
    world = World(BOOK)
    for _ in range(LIVES_MAX + 1):
        world.cuts = (edges_until_the_first_question(world),)
        with suppress(Killed):
            live(world)
    world.cuts = ()
    state = live(world)
    assert state.status is Status.FAILED
    assert state.reason == f"set aside: {LIVES_MAX} lives were lost at call_llm"
    assert world.applied == []


def edges_until_the_first_question(world: World) -> int:
    return world.edges + (7 if world.document is None else 3)
