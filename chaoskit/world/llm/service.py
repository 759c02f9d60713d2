"""The `llm` service itself: one port, and the API that a path belongs to."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from pydantic import JsonValue

from chaoskit.gate import Gate
from chaoskit.model.scenario import Scenario
from chaoskit.world.http import Answer, HttpLives, Reply, Request
from chaoskit.world.listener import LOOPBACK
from chaoskit.world.llm.anthropic import Anthropic
from chaoskit.world.llm.dialect import Api
from chaoskit.world.llm.key import CANARY as CANARY
from chaoskit.world.llm.model import Memory, Model
from chaoskit.world.llm.openai import OpenAi

BODY_BYTES_MAX = 2**25
APIS: tuple[Api, ...] = (OpenAi(), Anthropic())
"""Every API that is served; see `chaoskit.world.llm.dialect` for how to add one."""


class Llm:
    """See the module's docstring. One per worker process."""

    name = "llm"
    variables: ClassVar[Mapping[str, str]] = {
        name: meaning for api in APIS for name, meaning in api.variables.items()
    }

    def __init__(self) -> None:
        message = f"The body has more than {BODY_BYTES_MAX} bytes."
        too_large = {"message": message, "type": "invalid_request_error"}
        self._http = HttpLives(BODY_BYTES_MAX, Reply({"error": {**too_large}}, 413))
        self._port = 0
        self._model: Model | None = None

    async def start(self) -> None:
        """Take a port for the campaign."""
        self._port = await self._http.start()

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """Take up the script of the next trial."""
        await self._http.close_all()
        self._model = Model(gate, scenario)

    async def open(self, life: int) -> dict[str, str]:
        """Fresh sockets for a life, and the variables that name them."""
        model = self._scripted

        async def handle(request: Request) -> Answer:
            return await _routed(model, life, request)

        await self._http.open(life, handle, model.gate)
        url = f"http://{LOOPBACK}:{self._port}"
        environment: dict[str, str] = {}
        for api in APIS:
            environment |= api.environment(url + api.prefix, CANARY)
        return environment

    async def close(self, life: int) -> None:
        """Drop every connection of a life at once."""
        await self._http.close(life)

    async def snapshot(self) -> Memory:
        """How many replies were given, how often each turn was told, and what of it
        can be referred to."""
        return self._scripted.memory

    async def restore(self, snapshot: object) -> None:
        """Go on from there, so that no id is ever given twice in a run."""
        assert isinstance(snapshot, Memory)
        self._scripted.remember(snapshot)

    async def view(self) -> JsonValue:
        """Nothing, as agents find no trace of what they asked before; where the model
        wobbles, how it would answer next."""
        return self._scripted.view()

    async def stop(self) -> None:
        """Give the port back."""
        await self._http.stop()

    @property
    def _scripted(self) -> Model:
        assert self._model is not None, "reset comes first"
        return self._model


async def _routed(model: Model, life: int, request: Request) -> Answer:
    api = max(_that_serve(request.path), key=lambda api: len(api.prefix))
    below = replace(request, path=request.path.removeprefix(api.prefix))
    for dialect in api.dialects:
        if (below.method, below.path) == ("POST", dialect.path):
            return await model.serve(life, dialect, below)
    return api.look_up(below, model.stored)


def _that_serve(path: str) -> list[Api]:
    """The APIs whose prefix a path begins with; that of OpenAI fits every path."""
    return [api for api in APIS if path.startswith(f"{api.prefix}/")] or [APIS[0]]
