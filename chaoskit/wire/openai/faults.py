"""The OpenAI service's own errors: how it says that it is busy or broken.

The sentences are the service's, as its clients quote them in public reports. 529 is no
status of the service itself, but one that the gateways before it answer with.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

RETRY_AFTER_SECONDS = 1
_ASK_HELP = (
    "You can retry your request, or contact us through our help center at "
    "help.openai.com if the error persists. Please include the request ID {request} in "
    "your message."
)
_LIMIT_TOKENS = 30_000


@dataclass(frozen=True)
class ServiceError:
    """An error that is not the request's fault. ``{request}`` stands for its id."""

    status: int
    message: str
    type: str
    code: str | None = None
    headers: Mapping[str, str] | None = None

    def body(self, request_id: str) -> dict[str, JsonValue]:
        """The error as the API writes it, in a reply and inside a stream."""
        return {
            "error": {
                "message": self.message.format(request=request_id),
                "type": self.type,
                "param": None,
                "code": self.code,
            }
        }


_OVERLOADED = "Our servers are currently overloaded. Please try again later."

FAULTS: Mapping[str, ServiceError] = {
    "429": ServiceError(
        429,
        "Rate limit reached for the model in organization org-chaoskit on tokens per "
        f"min (TPM): Limit {_LIMIT_TOKENS}, Used {_LIMIT_TOKENS}, Requested 500. "
        f"Please try again in {RETRY_AFTER_SECONDS}s. Visit "
        "https://platform.openai.com/account/rate-limits to learn more.",
        "tokens",
        "rate_limit_exceeded",
        {
            "retry-after": str(RETRY_AFTER_SECONDS),
            "retry-after-ms": str(1000 * RETRY_AFTER_SECONDS),
            "x-ratelimit-limit-tokens": str(_LIMIT_TOKENS),
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": f"{RETRY_AFTER_SECONDS}s",
        },
    ),
    "500": ServiceError(
        500,
        f"An error occurred while processing your request. {_ASK_HELP}",
        "server_error",
        "server_error",
    ),
    "503": ServiceError(
        503, _OVERLOADED, "service_unavailable_error", "server_is_overloaded"
    ),
    "529": ServiceError(
        529, _OVERLOADED, "service_unavailable_error", "server_is_overloaded"
    ),
}
"""By the argument of the fault `error`."""
