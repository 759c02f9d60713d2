"""The API of OpenAI: Chat Completions, Responses, and the list of models."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import JsonValue

from chaoskit.wire.openai.errors import no_such_response, no_such_url, wrong_method
from chaoskit.wire.openai.models import model, models
from chaoskit.world.http import Reply, Request
from chaoskit.world.llm.dialect import Dialect, Stored
from chaoskit.world.llm.openai_access import refused, unauthorized
from chaoskit.world.llm.openai_chat import Chat
from chaoskit.world.llm.openai_responses import Responses

MODEL = "chaoskit-scripted"
_MODELS = "/v1/models"
_RESPONSES = "/v1/responses"


class OpenAi:
    """See `chaoskit.world.llm.dialect.Api`."""

    prefix = ""
    variables: ClassVar[Mapping[str, str]] = {
        "OPENAI_BASE_URL": "an OpenAI-compatible endpoint: Chat Completions, Responses",
        "OPENAI_API_KEY": "a canary, to be sent as the bearer token",
    }
    dialects: tuple[Dialect, ...] = (Chat(), Responses())

    def environment(self, url: str, key: str) -> Mapping[str, str]:
        """The variables for a life."""
        return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": key}

    def look_up(self, request: Request, stored: Stored) -> Reply:
        """Lists of models, answers that were kept, and what is not served."""
        path, method = request.path, request.method
        if method == "GET" and path == _MODELS:
            return _let_in(request, models(MODEL))
        if method == "GET" and path.startswith(f"{_MODELS}/"):
            return _let_in(request, model(path.removeprefix(f"{_MODELS}/")))
        if method == "GET" and path.startswith(f"{_RESPONSES}/"):
            return _kept(request, path.removeprefix(f"{_RESPONSES}/"), stored)
        known = path in self._paths or path.startswith(f"{_MODELS}/")
        return refused((wrong_method if known else no_such_url)(method, path))

    @property
    def _paths(self) -> tuple[str, ...]:
        return (_MODELS, *(dialect.path for dialect in self.dialects))


def _let_in(request: Request, body: JsonValue) -> Reply:
    refusal = unauthorized(request)
    return Reply(body) if refusal is None else refused(refusal)


def _kept(request: Request, identity: str, stored: Stored) -> Reply:
    earlier = stored.get(identity)
    if isinstance(earlier, dict):
        return _let_in(request, earlier["response"])
    return refused(unauthorized(request) or no_such_response(identity))
