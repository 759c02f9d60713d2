"""The `llm` service: a scripted model behind an OpenAI-compatible endpoint.

``POST /v1/chat/completions``, not streamed, is the operation ``chat`` with no key; it
has the edges ``before`` and ``after``. What is refused crosses too, so that a refusal
can be lost like any answer. ``GET /v1/models`` and ``/v1/models/ID`` cross nothing.

The answer depends on the conversation alone. Its ids say where it belongs, and are new
in each answer unless the scenario says otherwise. A tool that the script calls is
called whether or not the request declares it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import JsonValue

from chaoskit.gate import Gate
from chaoskit.model.address import Operation
from chaoskit.model.history import Asked
from chaoskit.model.scenario import Scenario
from chaoskit.wire import openai
from chaoskit.wire.json_text import parse
from chaoskit.wire.openai_conversation import (
    Message,
    place,
    texts,
    without_fresh_part,
)
from chaoskit.wire.openai_errors import (
    NO_KEY,
    WRONG_KEY,
    Refusal,
    no_such_url,
    not_json,
    wrong_method,
)
from chaoskit.world.http import HttpLives, Reply, Request
from chaoskit.world.listener import LOOPBACK

BODY_BYTES_MAX = 2**25
MODEL = "chaoskit-scripted"
CANARY = "sk-chaoskit-canary-" + hashlib.sha256(b"chaoskit canary").hexdigest()[:32]
"""The API key that agents are given. It must appear in no store, log or report."""

_CHAT = "/v1/chat/completions"
_MODELS = "/v1/models"
_FRESH_LENGTH = 16


class Llm:
    """See the module's docstring. One per worker process."""

    name = "llm"
    variables: ClassVar[Mapping[str, str]] = {
        "OPENAI_BASE_URL": "an OpenAI-compatible endpoint: Chat Completions",
        "OPENAI_API_KEY": "a canary, to be sent as the bearer token",
    }

    def __init__(self) -> None:
        too_large = Refusal(f"The body has more than {BODY_BYTES_MAX} bytes.")
        self._http = HttpLives(BODY_BYTES_MAX, Reply(too_large.body(), 413))
        self._port = 0
        self._model: _Model | None = None

    async def start(self) -> None:
        """Take a port for the campaign."""
        self._port = await self._http.start()

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """Take up the script of the next trial."""
        await self._http.close_all()
        self._model = _Model(gate, scenario)

    async def open(self, life: int) -> dict[str, str]:
        """Fresh sockets for a life, and the variables that name them."""
        model = self._scripted

        async def handle(request: Request) -> Reply:
            return await model.serve(life, request)

        await self._http.open(life, handle)
        return {
            "OPENAI_BASE_URL": f"http://{LOOPBACK}:{self._port}/v1",
            "OPENAI_API_KEY": CANARY,
        }

    async def close(self, life: int) -> None:
        """Drop every connection of a life at once."""
        await self._http.close(life)

    async def snapshot(self) -> int:
        """How many answers were given: the next one's ids depend on it."""
        return self._scripted.answers

    async def restore(self, snapshot: object) -> None:
        """Go on counting, so that no id is ever given twice in a run."""
        assert isinstance(snapshot, int)
        self._scripted.answers = snapshot

    async def view(self) -> JsonValue:
        """Nothing: an agent finds no trace here of what it asked before."""
        return None

    async def stop(self) -> None:
        """Give the port back."""
        await self._http.stop()

    @property
    def _scripted(self) -> "_Model":
        assert self._model is not None, "reset comes first"
        return self._model


@dataclass
class _Model:
    """The model of one trial: its script, and what it was told so far."""

    gate: Gate
    scenario: Scenario
    answers: int = 0
    _known: set[str] = field(default_factory=set)

    async def serve(self, life: int, request: Request) -> Reply:
        path = request.path
        if path == _CHAT and request.method == "POST":
            return await self._chat(life, request)
        if request.method == "GET" and path == _MODELS:
            return _authorized(request, openai.models(MODEL))
        if request.method == "GET" and path.startswith(f"{_MODELS}/"):
            return _authorized(request, openai.model(path.removeprefix(f"{_MODELS}/")))
        known = path in (_CHAT, _MODELS) or path.startswith(f"{_MODELS}/")
        return _refused((wrong_method if known else no_such_url)(request.method, path))

    async def _chat(self, life: int, request: Request) -> Reply:
        body, refusal = _read(request)
        found = place(_messages(body), self.scenario.task.goal)
        answer = openai.answer_at(self.scenario.llm.script, found.turn)

        async def apply() -> Reply:
            return self._write(body, answer) if refusal is None else _refused(refusal)

        crossing = self.gate.arrive(life, Operation("llm", "chat"))
        asked = Asked(
            life=life,
            turn=found.turn,
            carried=tuple(found.carried),
            contents=self._news(_messages(body)),
        )
        outcome = self._paid(body, answer) if refusal is None else _problem(refusal)
        self.gate.record(asked.model_copy(update=outcome))
        return await self.gate.cross(crossing, apply)

    def _paid(self, body: Mapping[str, Any], answer: openai.Answer) -> dict[str, int]:
        return {
            "past_end": answer.turn >= len(self.scenario.llm.script),
            "prompt_tokens": openai.prompt_tokens(body),
            "completion_tokens": answer.tokens * _choices(body),
        }

    def _news(self, messages: list[Message]) -> tuple[str, ...]:
        """The texts that no earlier request of the trial held; never the canary."""
        said = (_without_canary(text) for m in messages for text in texts(m))
        news = tuple(dict.fromkeys(text for text in said if text not in self._known))
        self._known.update(news)
        return news

    def _write(self, body: Mapping[str, Any], answer: openai.Answer) -> Reply:
        self.answers += 1
        fresh = [self._fresh(answer.turn, n) for n in range(_choices(body))]
        headers = {"x-request-id": f"req_{fresh[0]}"}
        return Reply(answer.completion(body, fresh), headers=headers)

    def _fresh(self, turn: int, choice: int) -> str:
        seed = f"{turn}/{choice}"
        if self.scenario.llm.fresh_ids:
            seed = f"{self.gate.names.run_id}/{self.answers}/{choice}"
        return hashlib.sha256(seed.encode()).hexdigest()[:_FRESH_LENGTH]


def _read(request: Request) -> tuple[Mapping[str, Any], Refusal | None]:
    """The body, as far as it can be read, and why it is refused."""
    try:
        body = parse(request.body)
    except ValueError as wrong:
        return {}, _unauthorized(request) or not_json(str(wrong))
    if not isinstance(body, dict):
        return {}, _unauthorized(request) or not_json("it is no JSON object")
    return body, _unauthorized(request) or openai.refusal(body)


def _unauthorized(request: Request) -> Refusal | None:
    sent = request.all("authorization")
    scheme, _, key = sent[0].partition(" ") if sent else ("", "", "")
    if scheme.lower() != "bearer" or not key.strip():
        return NO_KEY
    return None if key.strip() == CANARY else WRONG_KEY


def _authorized(request: Request, body: JsonValue) -> Reply:
    refusal = _unauthorized(request)
    return Reply(body) if refusal is None else _refused(refusal)


def _refused(refusal: Refusal) -> Reply:
    return Reply(refusal.body(), refusal.status)


def _problem(refusal: Refusal) -> dict[str, str]:
    return {"problem": _without_canary(without_fresh_part(refusal.message))}


def _without_canary(text: str) -> str:
    return text.replace(CANARY, "{canary}")


def _choices(body: Mapping[str, Any]) -> int:
    """How many alternatives a valid request asks for; all of them are alike."""
    number: int = body.get("n") or 1
    return number


def _messages(body: Mapping[str, Any]) -> list[Message]:
    """The messages of a request, as far as they look like ones."""
    messages = body.get("messages")
    found = messages if isinstance(messages, list) else []
    return [message for message in found if isinstance(message, dict)]
