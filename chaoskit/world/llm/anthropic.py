"""The API of Anthropic: Messages, the count of tokens, and the list of models.

``POST /v1/messages`` is the operation ``messages``, streamed or not; all of it lives
below ``/anthropic``. Counting tokens is a look-up and crosses nothing.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import JsonValue

from chaoskit.wire import sse
from chaoskit.wire.anthropic import replies as anthropic
from chaoskit.wire.anthropic.blocks import texts_of
from chaoskit.wire.anthropic.conversation import place
from chaoskit.wire.anthropic.errors import (
    FAILURES,
    KEY_VARIABLE,
    NO_KEY,
    NO_VERSION,
    WRONG_BEARER,
    WRONG_KEY,
    Refusal,
    no_such_path,
    not_json,
    wrong_method,
    wrong_version,
)
from chaoskit.wire.anthropic.terms import NEWEST, VERSIONS, Terms
from chaoskit.wire.anthropic.usage import usage
from chaoskit.wire.said import FRESH_LENGTH, Ids
from chaoskit.world.http import Reply, Request
from chaoskit.world.llm.body import body_of
from chaoskit.world.llm.dialect import (
    LENGTH,
    Dialect,
    Question,
    Stored,
    Told,
    Written,
)
from chaoskit.world.llm.key import CANARY

MODEL = "chaoskit-scripted"
_MESSAGES = "/v1/messages"
_COUNT = f"{_MESSAGES}/count_tokens"
_MODELS = "/v1/models"


class Messages:
    """See `chaoskit.world.llm.dialect.Dialect`."""

    op = "messages"
    path = _MESSAGES

    def read(self, request: Request, goal: str, stored: Stored) -> Question:
        """Judge and place a request."""
        body, denied = _body_of(request)
        refusal = denied or anthropic.refusal(body, _terms(request))
        found, said = place(body, goal), texts_of(body)
        if refusal is not None:
            refused = _refused(request, refusal)
            return Question(found, said, body, refusal.message, refused)
        return Question(
            found,
            said,
            body,
            streamed=bool(body.get("stream")),
            prompt_tokens=usage(body).prompt,
        )

    def write(self, told: Told) -> Written:
        """The answer, whole or as events."""
        headers, answer = {"request-id": told.ids.request}, _answer(told)
        if told.question.streamed:
            pieces = tuple(map(_piece, answer.events()))
            whole = len(pieces) - 1
            return Written(pieces=pieces, whole=whole, headers=headers)
        return Written(answer.message(), headers=headers)

    def fail(self, argument: str, ids: Ids) -> Reply:
        """The service's own error in place of a reply."""
        return _error(FAILURES[argument], ids.request)

    def break_off(self, told: Told, sent: int, argument: str) -> bytes:
        """An ``error`` event inside a 200; nothing comes after it."""
        answer = _answer(told)
        if argument == LENGTH:
            rest = answer.ended_after(answer.events()[:sent])
            return b"".join(map(_piece, rest))
        return _piece(FAILURES[argument].body(told.ids.request))


class Anthropic:
    """See `chaoskit.world.llm.dialect.Api`."""

    prefix = "/anthropic"
    variables: ClassVar[Mapping[str, str]] = {
        "ANTHROPIC_BASE_URL": "an Anthropic-compatible endpoint: Messages",
        KEY_VARIABLE: "the same canary, to be sent as x-api-key or bearer token",
    }
    dialects: tuple[Dialect, ...] = (Messages(),)

    def environment(self, url: str, key: str) -> Mapping[str, str]:
        """The variables for a life. The clients add ``/v1/messages`` themselves."""
        return {"ANTHROPIC_BASE_URL": url, KEY_VARIABLE: key}

    def look_up(self, request: Request, stored: Stored) -> Reply:
        """Lists of models and counts of tokens; and what is not served."""
        path, called = request.path, (request.method, request.path)
        if called == ("POST", _COUNT):
            return _counted(request)
        if called == ("GET", _MODELS):
            return _let_in(request, anthropic.models(MODEL))
        name = path.removeprefix(f"{_MODELS}/")
        if request.method == "GET" and name not in ("", path):
            return _let_in(request, anthropic.model(name))
        known = name not in ("", path) or path in (_MESSAGES, _COUNT, _MODELS)
        return _refused(request, (wrong_method if known else no_such_path)(*called))


def _answer(told: Told) -> anthropic.Answer:
    return anthropic.answer(told.question.body, told.said, told.ids)


def _piece(event: Mapping[str, JsonValue]) -> bytes:
    return sse.event(event, str(event["type"]))


def _let_in(request: Request, body: JsonValue) -> Reply:
    denied = _denied(request)
    if denied is not None:
        return _refused(request, denied)
    return Reply(body, headers={"request-id": _request_id(request)})


def _counted(request: Request) -> Reply:
    body, denied = _body_of(request)
    refusal = denied or anthropic.count_refusal(body, _terms(request))
    if refusal is not None:
        return _refused(request, refusal)
    return _let_in(request, {"input_tokens": usage(body).prompt})


def _body_of(request: Request) -> tuple[Mapping[str, Any], Refusal | None]:
    """The body, as far as it can be read, and why it is refused unseen."""
    return body_of(request, _denied(request), not_json)


def _denied(request: Request) -> Refusal | None:
    """Why a request is not let in, by its headers alone; None where it is."""
    keys, bearers = request.all("x-api-key"), request.all("authorization")
    if not any((*keys, *bearers)):
        return NO_KEY
    if any(keys) and keys[0].strip() != CANARY:
        return WRONG_KEY
    if not any(keys) and _bearer(bearers[0]) != CANARY:
        return WRONG_BEARER
    versions = request.all("anthropic-version")
    if not any(versions):
        return NO_VERSION
    return None if versions[0] in VERSIONS else wrong_version(versions[0])


def _bearer(header: str) -> str:
    scheme, _, key = header.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _terms(request: Request) -> Terms:
    """How a request that was let in is to be read."""
    version = next(iter(request.all("anthropic-version")), NEWEST.version)
    return Terms(version, any(request.all("anthropic-beta")))


def _refused(request: Request, refusal: Refusal) -> Reply:
    return _error(refusal, _request_id(request))


def _error(refusal: Refusal, request_id: str) -> Reply:
    headers = refusal.headers(request_id)
    return Reply(refusal.body(request_id), refusal.status, headers)


def _request_id(request: Request) -> str:
    """The id of a request that never gets to the model: steady, as nothing counts."""
    told = f"{request.method} {request.path}\n".encode() + request.body
    return f"req_{hashlib.sha256(told).hexdigest()[:FRESH_LENGTH]}"
