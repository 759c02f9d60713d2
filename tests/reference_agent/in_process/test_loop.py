"""Whole runs in one process: the loop, a real store, and the model's own engine."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from reference_agent import one_shot
from reference_agent.effects import Effect
from reference_agent.logs import Log
from reference_agent.loop import Services
from reference_agent.model_client import OpenAIModel
from reference_agent.state import State, Status
from reference_agent.stop import Stop
from reference_agent.stores.files import FileStore
from reference_agent.tools import TOOLS
from reference_agent.transitions import ATTEMPTS_MAX, PAUSE_SECONDS_MAX, Outcome

SCRIPT: list[dict[str, Any]] = [
    {"call": [{"tool": "search_flights", "args": {"to": "NYC"}}]},
    {
        "call": [
            {"tool": "hold_seat", "args": {"order": "o-1", "seat": "12A"}},
            {"tool": "charge_card", "args": {"order": "o-1", "cents": 42000}},
        ]
    },
    {"say": "Booked, and paid."},
]
MODES = [pytest.param(False, id="whole"), pytest.param(True, id="streamed")]
both = pytest.mark.parametrize("stream", MODES)


class Tools:
    """Does what it is told, and keeps the keys."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def do(self, tool: str, arguments: dict[str, Any], key: str) -> Outcome:
        self.keys.append(key)
        return Outcome("ok", applied=True)

    def done(self, tool: str, arguments: dict[str, Any]) -> list[Effect]:
        return []


class Naps(Stop):
    """Notes how long it was asked to rest, and does not."""

    def __init__(self) -> None:
        super().__init__()
        self.naps: list[float] = []

    def nap(self, seconds: float) -> bool:
        self.naps.append(seconds)
        return True


class Run:
    """One run, whose lives are calls of `go_on`."""

    def __init__(self, store: FileStore, model: OpenAIModel) -> None:
        self.tools, self.stop, self.log = Tools(), Naps(), io.StringIO()
        self.services = Services(
            store=store,
            model=model,
            tool_service=self.tools,
            tools=TOOLS,
            log=Log(self.log),
            stop=self.stop,
            owner="me",
            lease_seconds=60.0,
        )

    def go_on(self) -> State:
        goal = "Book a flight to NYC"
        return one_shot.go_on("r1", goal, self.services, resumes=False)

    @property
    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@pytest.fixture
def begin(
    tmp_path: Path, make_model: Callable[..., OpenAIModel]
) -> Iterator[Callable[..., Run]]:
    with closing(FileStore(tmp_path)) as store:
        offers = [tool.offer() for tool in TOOLS.values()]
        yield lambda **how: Run(store, make_model(offers, **how))


@both
def test_a_run_from_its_goal_to_its_answer(
    begin: Any, engine: Any, *, stream: bool
) -> None:
    engine.play(SCRIPT)
    run = begin(stream=stream)
    state = run.go_on()
    assert (state.status, state.answer) == (Status.DONE, "Booked, and paid.")
    assert run.tools.keys == [
        "r1/1/0/search_flights",
        "r1/2/0/hold_seat",
        "r1/2/1/charge_card",
    ]
    assert [call.step for call in state.model_calls] == [1, 2, 3]
    assert all(call.completion_tokens for call in state.model_calls)
    assert engine.questions == 3


@both
@pytest.mark.parametrize(
    "fault",
    [
        "error(500)@0:llm.chat#2:before",
        "error(503)@0:llm.chat#2:before",
        "error(529)@0:llm.chat#2:before",
        "drop_reply@0:llm.chat#2:after",
        "tear@0:llm.chat#2:part:1",
    ],
)
def test_a_question_that_got_no_whole_answer_is_asked_again_and_nothing_else(
    begin: Any, engine: Any, fault: str, *, stream: bool
) -> None:
    """No call is made of half a reply, and no state is entered twice."""
    engine.play(SCRIPT, fault)
    run = begin(stream=stream)
    state = run.go_on()
    assert engine.fired == [fault]
    assert state.status is Status.DONE
    assert len(run.tools.keys) == len(set(run.tools.keys)) == 3
    assert [call.step for call in state.model_calls] == [1, 2, 3]
    assert len(state.messages) == 7  # the goal, two turns with their results, the end
    assert len(run.stop.naps) == 1
    ids = [line["checkpoint_id"] for line in run.logged]
    assert ids == sorted(ids)


def test_a_wait_is_as_long_as_the_provider_asks_for(begin: Any, engine: Any) -> None:
    engine.play(SCRIPT)
    engine.instead = [
        httpx.Response(429, headers={"retry-after": "7"}),
        httpx.Response(429, headers={"retry-after": "86400"}),
        httpx.Response(429),
    ]
    run = begin()
    assert run.go_on().status is Status.DONE
    first, second, third = run.stop.naps
    assert first == pytest.approx(7, abs=0.5)
    assert second == pytest.approx(PAUSE_SECONDS_MAX, abs=0.5)
    assert third == pytest.approx(1, abs=0.5)  # the third attempt's own


FALLBACKS = [
    {"base_url": "https://second.example/v1", "model": "b", "api_key_env": "KEY_B"},
    {"base_url": "https://third.example/v1", "model": "c", "api_key_env": "KEY_C"},
]


@pytest.fixture
def fallbacks(monkeypatch: pytest.MonkeyPatch, engine: Any) -> None:
    monkeypatch.setenv("OPENAI_FALLBACKS", json.dumps(FALLBACKS))
    for name in ("KEY_B", "KEY_C"):
        monkeypatch.setenv(name, engine.key)


def hosts(engine: Any) -> list[str]:
    return [request.url.host for request in engine.requests]


@pytest.mark.usefixtures("fallbacks")
def test_an_outage_is_outlasted_at_the_next_endpoint_which_is_kept(
    begin: Any, engine: Any
) -> None:
    engine.play(SCRIPT)
    engine.instead = [httpx.Response(503)] * ATTEMPTS_MAX
    run = begin()
    state = run.go_on()
    assert (state.status, state.endpoint) == (Status.DONE, 1)
    assert len(set(hosts(engine)[:ATTEMPTS_MAX])) == 1
    assert set(hosts(engine)[ATTEMPTS_MAX:]) == {"second.example"}
    assert len(run.stop.naps) == ATTEMPTS_MAX - 1


@pytest.mark.usefixtures("fallbacks")
def test_an_endpoint_of_no_use_is_left_at_once(begin: Any, engine: Any) -> None:
    engine.play(SCRIPT)
    engine.instead = [httpx.Response(401), httpx.Response(404)]
    run = begin()
    state = run.go_on()
    assert (state.status, state.endpoint) == (Status.DONE, 2)
    assert hosts(engine)[1:3] == ["second.example", "third.example"]
    assert run.stop.naps == []


@pytest.mark.usefixtures("fallbacks")
def test_where_no_endpoint_is_left_the_run_fails_in_words(
    begin: Any, engine: Any
) -> None:
    engine.play(SCRIPT)
    engine.instead = [httpx.Response(503)] * (3 * ATTEMPTS_MAX)
    state = begin().go_on()
    assert state.status is Status.FAILED
    reason = f"gave up after {ATTEMPTS_MAX} attempts: the model: it answered 503"
    assert state.reason == reason


def test_a_refused_question_is_not_asked_elsewhere(
    begin: Any, engine: Any, fallbacks: None
) -> None:
    """Another provider would refuse it too, or worse, not."""
    engine.play(SCRIPT)
    engine.instead = [httpx.Response(400)]
    state = begin().go_on()
    assert state.status is Status.FAILED
    assert len(engine.requests) == 1


def test_the_run_and_its_step_travel_with_each_question(
    begin: Any, engine: Any
) -> None:
    engine.play(SCRIPT)
    begin().go_on()
    sent = [request.headers["x-client-request-id"] for request in engine.requests]
    assert sent == ["r1/1", "r1/2", "r1/3"]
