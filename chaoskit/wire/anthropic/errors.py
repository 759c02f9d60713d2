"""How the Anthropic API refuses a request and how it fails: status, `type`, words.

The sentences are the service's own, as its clients quote them in public reports, so
that an agent that reads them finds here what it will find there. Every answer has a
``request-id`` header; an error repeats it in its body.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

KEY_VARIABLE = "ANTHROPIC_API_KEY"
RETRY_AFTER_SECONDS = 1


@dataclass(frozen=True)
class Refusal:
    """The error that the API answers a request with."""

    message: str
    kind: str = "invalid_request_error"
    status: int = 400

    def body(self, request_id: str) -> dict[str, JsonValue]:
        """The error as the API writes it, in a body and in an event of a stream."""
        error: JsonValue = {"type": self.kind, "message": self.message}
        return {"type": "error", "error": error, "request_id": request_id}

    def headers(self, request_id: str) -> dict[str, str]:
        """What goes with it; the official clients obey ``x-should-retry``."""
        again = self.status == 429 or self.status >= 500
        found = {"request-id": request_id, "x-should-retry": str(again).lower()}
        if self.status == 429:
            found["retry-after"] = str(RETRY_AFTER_SECONDS)
        return found


Refusals = Iterator[Refusal]

FAILURES: Mapping[str, Refusal] = {
    "429": Refusal(
        "This request would exceed your organization's rate limit of 50 requests per "
        "minute. Please try again later.",
        "rate_limit_error",
        429,
    ),
    "500": Refusal("Internal server error", "api_error", 500),
    # What stands before the API answers in its stead, and has no type of its own.
    "503": Refusal(
        "upstream connect error or disconnect/reset before headers. reset reason: "
        "overflow",
        "api_error",
        503,
    ),
    "529": Refusal("Overloaded", "overloaded_error", 529),
}
"""The API's own errors, by the argument of a fault `error`."""


def at(path: str, problem: str) -> Refusal:
    """Something is wrong at a place of the request."""
    return Refusal(f"{path}: {problem}")


def missing(path: str) -> Refusal:
    """A required field is not there."""
    return at(path, "Field required")


def extra(path: str) -> Refusal:
    """A field that the API does not have."""
    return at(path, "Extra inputs are not permitted")


def expected(path: str, what: str) -> Refusal:
    """A value is not what it should be: ``a valid string``, ``'a' or 'b'``."""
    return at(path, f"Input should be {what}")


def unknown_tag(path: str, tag: str, known: Sequence[str]) -> Refusal:
    """An object of a type that the API does not know."""
    return at(
        path,
        f"Input tag '{tag}' found using 'type' does not match any of the expected "
        f"tags: {', '.join(map(repr, known))}",
    )


def either(words: Sequence[str]) -> str:
    """``'a', 'b' or 'c'``, as the API enumerates."""
    *most, last = map(repr, words)
    return f"{', '.join(most)} or {last}" if most else last


NO_KEY = Refusal(
    f"x-api-key header is required. Here the key is the one in {KEY_VARIABLE}.",
    "authentication_error",
    401,
)
WRONG_KEY = Refusal(
    f"invalid x-api-key. Here the key is the one in {KEY_VARIABLE}.",
    "authentication_error",
    401,
)
WRONG_BEARER = Refusal(
    f"Invalid bearer token. Here the key is the one in {KEY_VARIABLE}.",
    "authentication_error",
    401,
)
NO_VERSION = at("anthropic-version", "header is required")


def wrong_version(version: str) -> Refusal:
    """The ``anthropic-version`` header names none of the API's versions."""
    return at("anthropic-version", f'"{version}" is not a valid version')


def not_json(reason: str) -> Refusal:
    """The body is no JSON object; ``reason`` says why."""
    return Refusal(f"The request body is not valid JSON: {reason}")


def no_such_path(method: str, path: str) -> Refusal:
    """A path that is not served."""
    return Refusal(
        f"Not Found ({method} {path}). This version serves POST /v1/messages, "
        "POST /v1/messages/count_tokens, GET /v1/models and GET /v1/models/ID.",
        "not_found_error",
        404,
    )


def wrong_method(method: str, path: str) -> Refusal:
    """A path that is served, to another method."""
    return Refusal(f"Method Not Allowed ({method} {path})", status=405)
