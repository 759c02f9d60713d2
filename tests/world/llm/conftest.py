"""The `llm` service and the official clients of both vendors."""

from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest

CALLS = [
    {"call": [{"tool": "search", "args": {"to": "NYC"}}]},
    {
        "call": [
            {"tool": "hold", "args": {"order": "o-1"}},
            {"tool": "pay", "args": {"order": "o-1", "cents": 42000}},
        ]
    },
]
WAITS = [{"ask": "Approve?"}, {"wait": 0.5}]


@pytest.fixture
def make_booking(make_scenario: Callable[..., Any]) -> Callable[..., Any]:
    """A call, two at once, a question and a wait (or ``waits=False``), and the end."""

    def make(*, waits: bool = True, **rest: Any) -> Any:
        tools = {"search": "read", "hold": "keyed", "pay": "keyed"}
        script = [*CALLS, *(WAITS if waits else ()), {"say": "Booked."}]
        return make_scenario(script, tools, **rest)

    return make


@pytest.fixture
def scenario(make_booking: Callable[..., Any]) -> Any:
    """All of it; a module may say otherwise."""
    return make_booking()


def _options(key: str, changes: dict[str, Any]) -> dict[str, Any]:
    # One TLS context less: it would take most of a test's time.
    plain = httpx2.AsyncClient(verify=False, trust_env=False)
    given = {"api_key": key, "max_retries": 0, "timeout": 5, "http_client": plain}
    return given | changes


@pytest.fixture
def openai_at() -> Callable[..., openai.AsyncOpenAI]:
    """The official client: ``async with openai_at(variables) as client``."""

    def connect(env: dict[str, str], **changes: Any) -> openai.AsyncOpenAI:
        options = _options(env["OPENAI_API_KEY"], changes)
        return openai.AsyncOpenAI(base_url=env["OPENAI_BASE_URL"], **options)

    return connect


@pytest.fixture
def anthropic_at() -> Callable[..., anthropic.AsyncAnthropic]:
    """The official client: ``async with anthropic_at(variables) as client``."""

    def connect(env: dict[str, str], **changes: Any) -> anthropic.AsyncAnthropic:
        options = _options(env["ANTHROPIC_API_KEY"], changes)
        return anthropic.AsyncAnthropic(base_url=env["ANTHROPIC_BASE_URL"], **options)

    return connect
