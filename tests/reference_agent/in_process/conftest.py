"""The scripted model in the same process, without a socket: for whole conversations.

The engine is the one that the `llm` service runs, with its script, its judgement of
requests, its streams, its gate and its faults. respx stands where sockets were::

    def test_it(engine, make_model):
        engine.play([{"say": "Done."}], "error(429)@0:llm.chat#1:before")
        model = make_model(stream=True)
        model.ask(messages, run_id="r1", step=1, endpoint=0)
        assert engine.questions == 1

Any host is the engine, so that fallbacks come to it too. What the service never says
goes into `engine.instead`: those are told first, one for each request. A question that
the real API would refuse fails the test.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpcore2
import httpx
import pytest
import respx
from respx.mocks import HTTPCoreMocker

from chaoskit.gate import Dropped, Failed, FreshNames, Gate, Recorder
from chaoskit.model.history import Asked, Cause, FaultFired
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.wire.json_text import compact
from chaoskit.wire.pieces import halves
from chaoskit.world.http import Answer, Reply, Request
from chaoskit.world.llm.key import CANARY
from chaoskit.world.llm.model import Model
from chaoskit.world.llm.openai import OpenAi
from reference_agent.model_client import OpenAIModel

CHAT = OpenAi.dialects[0]
GOAL = "Book a flight to NYC"


class HTTPCore2Mocker(HTTPCoreMocker):
    """respx, aimed at what the SDK sends through: httpx2 on httpcore2."""

    name = "httpcore2"
    targets = [  # noqa: RUF012
        target.replace("httpcore.", "httpcore2.", 1)
        for target in HTTPCoreMocker.targets
    ]

    @classmethod
    def from_sync_httpx_response(
        cls, httpx_response: httpx.Response, target: Any, **kwargs: Any
    ) -> httpcore2.Response:
        """The reply in the words of the transport below."""
        return httpcore2.Response(
            status=httpx_response.status_code,
            headers=httpx_response.headers.raw,
            content=httpx_response.stream,
            extensions=httpx_response.extensions,
        )


@dataclass
class Engine:
    """The model of one trial, and what was asked of it."""

    scenario: Scenario
    gate: Gate
    key: str = CANARY
    requests: list[httpx.Request] = field(default_factory=list)
    instead: list[httpx.Response | Exception] = field(default_factory=list)
    _model: Model | None = None

    def play(self, script: Sequence[dict[str, Any]], faults: str = "") -> None:
        """Begin another trial: a script (section 4 of the contract), and a schedule."""
        self.scenario = scenario_of(script)
        self.gate = gate_of(faults)
        self._model = Model(self.gate, self.scenario)

    @property
    def asked(self) -> list[Asked]:
        """The questions that got here, as the history has them."""
        events = self.gate.record.events
        return [event for event in events if isinstance(event, Asked)]

    @property
    def questions(self) -> int:
        """How many there were."""
        return len(self.asked)

    @property
    def fired(self) -> list[str]:
        """The faults that struck."""
        events = self.gate.record.events
        return [event.fault for event in events if isinstance(event, FaultFired)]

    @property
    def problems(self) -> list[str]:
        """Why questions were refused."""
        return [asked.problem for asked in self.asked if asked.problem is not None]

    async def serve(self, request: httpx.Request) -> httpx.Response:
        """Answer as the service does; a connection that it resets breaks off."""
        self.requests.append(request)
        if self.instead:
            return _told(self.instead.pop(0))
        assert self._model is not None, "play comes first"
        headers = tuple(request.headers.items())
        told = Request("POST", request.url.path, (), headers, request.content)
        try:
            answer = await self._model.serve(0, CHAT, told)
        except Dropped:
            raise httpcore2.ReadError("reset") from None
        return self._response(answer)

    def _response(self, answer: Answer) -> httpx.Response:
        headers = dict(answer.headers)
        if isinstance(answer, Reply):
            body = compact(answer.body).encode()
            headers |= {
                "content-type": "application/json",
                "content-length": str(len(body)),
            }
            if answer.crossing is None or not self.gate.is_cut(answer.crossing):
                return httpx.Response(answer.status, headers=headers, content=body)
            pieces: Sequence[bytes] = halves(body)
        else:
            headers["content-type"] = answer.content_type
            pieces = answer.pieces
        sent = self._delivered(answer, pieces)
        return httpx.Response(answer.status, headers=headers, content=sent)

    async def _delivered(
        self, answer: Answer, pieces: Sequence[bytes]
    ) -> AsyncIterator[bytes]:
        """The pieces as they get through, and how it ends where a fault ends it."""
        got: list[bytes] = []

        async def send(piece: bytes) -> None:
            got.append(piece)

        assert answer.crossing is not None
        broken = False
        try:
            await self.gate.deliver(answer.crossing, pieces, send)
        except Dropped:
            broken = True
        except Failed as failed:
            if isinstance(answer, Reply):  # no place for an error inside
                broken = True
            else:
                got.append(answer.failure(failed.fault))
        for piece in got:
            yield piece
        if broken:
            raise httpcore2.ReadError("reset")


def _told(reply: httpx.Response | Exception) -> httpx.Response:
    if isinstance(reply, Exception):
        raise reply
    return reply


def scenario_of(script: Sequence[dict[str, Any]]) -> Scenario:
    """A scenario whose tools are those that the script calls."""
    calls = [turn["call"] for turn in script if "call" in turn]
    steps = [step if isinstance(step, list) else [step] for step in calls]
    tools = {call["tool"]: {"class": "keyed"} for step in steps for call in step}
    return Scenario.model_validate(
        {
            "name": "in-process",
            "agent": "agent.yaml",
            "task": {"goal": GOAL},
            "llm": {"script": list(script), "fresh_ids": True},
            "tools": tools,
            "human": ["approve"] * len(script),
        }
    )


def gate_of(faults: str) -> Gate:
    """A gate before an agent that no fault kills: it is this very process."""

    async def end_life(life: int, cause: Cause) -> None:
        raise AssertionError(f"nobody can end life {life} here ({cause})")

    names, schedule = FreshNames("r1"), Schedule.parse(faults)
    return Gate(Recorder(), names, schedule, end_life)


@pytest.fixture
def http() -> Iterator[respx.MockRouter]:
    """What every request through httpx2 meets; one without a route fails the test."""
    with respx.mock(using="httpcore2", assert_all_called=False) as router:
        yield router


@pytest.fixture
def engine(http: respx.MockRouter, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The scripted model, behind OPENAI_BASE_URL."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.delenv("OPENAI_FALLBACKS", raising=False)
    script = [{"say": "Done."}]
    engine = Engine(scenario_of(script), gate_of(""))
    engine.play(script)
    http.route(name="engine", path="/v1/chat/completions").mock(
        side_effect=engine.serve
    )
    yield engine
    assert engine.problems == []


@pytest.fixture
def make_model(engine: Engine) -> Callable[..., OpenAIModel]:
    """The client, as the environment is by now: ``make_model(tools, stream=True)``."""

    def make(tools: Sequence[dict[str, Any]] = (), **options: Any) -> OpenAIModel:
        return OpenAIModel(list(tools), **options)

    return make
