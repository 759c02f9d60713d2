"""What both OpenAI dialects share: the key, the body, and errors as replies."""

from collections.abc import Mapping
from typing import Any

from chaoskit.wire.openai.errors import NO_KEY, WRONG_KEY, Refusal, not_json
from chaoskit.wire.openai.faults import FAULTS
from chaoskit.wire.said import Ids
from chaoskit.world.http import Reply, Request
from chaoskit.world.llm.body import body_of
from chaoskit.world.llm.key import CANARY

VERSION = "2020-10-01"


def read_body(request: Request) -> tuple[Mapping[str, Any], Refusal | None]:
    """The body, as far as it can be read, and why it is refused unseen."""
    return body_of(request, unauthorized(request), not_json)


def unauthorized(request: Request) -> Refusal | None:
    """Why a request is not let in; None where it is."""
    sent = request.all("authorization")
    scheme, _, key = sent[0].partition(" ") if sent else ("", "", "")
    if scheme.lower() != "bearer" or not key.strip():
        return NO_KEY
    return None if key.strip() == CANARY else WRONG_KEY


def refused(refusal: Refusal) -> Reply:
    """A refusal as a reply."""
    return Reply(refusal.body(), refusal.status)


def failed(argument: str, ids: Ids) -> Reply:
    """The service's own error as a reply."""
    error = FAULTS[argument]
    return Reply(
        error.body(ids.request), error.status, {**headers(ids), **(error.headers or {})}
    )


def headers(ids: Ids) -> dict[str, str]:
    """The headers of every reply that got as far as the model."""
    return {
        "x-request-id": ids.request,
        "openai-version": VERSION,
        "openai-organization": "org-chaoskit",
        "openai-processing-ms": "1",
    }
