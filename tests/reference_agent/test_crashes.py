"""A run that is cut off anywhere, and cut off again, applies each call once.

In-process and exhaustive: every edge of every outside call and save is tried, and every
pair of them. The real kills are in `test_life`; these find what they would miss.
"""

import io
import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import pytest

from reference_agent import checkpoint, loop, transitions
from reference_agent.effects import NoLookUp
from reference_agent.logs import Log
from reference_agent.loop import Services
from reference_agent.model_client import ModelTrouble
from reference_agent.state import State, Status
from reference_agent.tools import TOOLS, Promise
from reference_agent.transitions import Outcome, Reply

Script = list[list[tuple[str, dict[str, Any]]]]

MAIL = ("send_mail", {"to": "ann", "subject": "hi", "body": "x"})
PAY = ("charge_card", {"order": "o-1", "cents": 3})
FAX = ("send_fax", {"to": "hotel", "body": "x"})
BOOK: Script = [[("search_flights", {"to": "NYC"})], [PAY, PAY], [MAIL, MAIL], [MAIL]]
SHORT: Script = [[PAY, MAIL], [MAIL]]
FAXES: Script = [[FAX, FAX]]


class Killed(BaseException):
    """The process is gone; nothing of it may run on."""


@dataclass
class World:
    """Store, model and tools; it cuts the run off at chosen edges, counted from 1."""

    script: Script
    cuts: tuple[int, ...] = ()
    edges: int = 0
    document: str | None = None
    applied: list[tuple[str, str, str | None]] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)

    def edge(self) -> None:
        self.edges += 1
        if self.edges in self.cuts:
            raise Killed

    def load(self, run_id: str) -> bytes | None:
        return None if self.document is None else self.document.encode()

    def save(self, run_id: str, document: str) -> None:
        self.edge()
        self.document = document
        self.edge()

    def ask(self, messages: tuple[dict[str, Any], ...]) -> Reply:
        self.edge()
        turn = sum(1 for m in messages if m["role"] == "assistant")
        self.asked.append(turn)
        self.edge()
        message: dict[str, Any] = {"role": "assistant", "content": "Booked."}
        if turn < len(self.script):
            message["tool_calls"] = [
                {
                    "id": f"{self.edges}.{position}",
                    "function": {"name": tool, "arguments": json.dumps(arguments)},
                }
                for position, (tool, arguments) in enumerate(self.script[turn])
            ]
        return Reply(f"c{self.edges}", message, 7, 3)

    def do(self, tool: str, arguments: dict[str, Any], key: str | None) -> Outcome:
        self.edge()
        known = [k for _, _, k in self.applied if k is not None]
        if key not in known:
            self.applied.append((tool, json.dumps(arguments), key))
        self.edge()
        return Outcome("ok", applied=True)

    def done(self, tool: str, arguments: dict[str, Any]) -> list[Outcome]:
        self.edge()
        if TOOLS[tool].promise is not Promise.QUERYABLE:
            raise NoLookUp
        wanted = (tool, json.dumps(arguments))
        found = [effect for effect in self.applied if effect[:2] == wanted]
        return [Outcome("ok", applied=True) for _ in found]

    def counts(self) -> Counter[str]:
        return Counter(tool for tool, _, _ in self.applied)


@dataclass
class Outage(World):
    """The model is away, and it is noted how long the agent waits before it asks."""

    waited: list[float] = field(default_factory=list)

    def ask(self, messages: tuple[dict[str, Any], ...]) -> Reply:
        self.edge()
        raise ModelTrouble("it answered 503", passing=True)


def live(world: World, sleep: Callable[[float], None] = time.sleep) -> State:
    services = Services(world, world, world, TOOLS, Log(io.StringIO()), sleep)
    document = world.load("r1")
    if document is None:
        state = loop.save(transitions.begin("r1", "goal"), services)
    else:
        state = transitions.resumed(checkpoint.load(document))
    return loop.run(state, services)


def survive(script: Script, cuts: tuple[int, ...]) -> tuple[State, World]:
    world = World(script, cuts)
    for _ in range(len(cuts) + 1):
        try:
            return live(world), world
        except Killed:
            continue
    raise AssertionError("more deaths than cuts")


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
    return len(checkpoint.load(document).model_calls)


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


@pytest.mark.parametrize("script", [BOOK, FAXES])
def test_a_run_that_has_ended_is_left_alone(script: Script) -> None:
    for cuts in [(), (edges_of(script) - 8,)]:
        state, world = survive(script, cuts)
        before = (world.document, len(world.applied), len(world.asked))
        assert live(world).status is state.status
        assert (world.document, len(world.applied), len(world.asked)) == before


def test_an_outage_that_does_not_end_fails_the_run_after_bounded_attempts() -> None:
    """They are counted over lives: the one that is cut off does not start anew."""
    world = Outage(BOOK, cuts=(13,))  # after the third attempt was stored
    with suppress(Killed):
        live(world, world.waited.append)
    assert checkpoint.load(world.document or "").attempts == 3
    state = live(world, world.waited.append)
    assert state.status is Status.FAILED
    assert state.reason == "gave up after 5 attempts: the model: it answered 503"
    assert world.waited == [0.25, 0.5, 1, 2]
