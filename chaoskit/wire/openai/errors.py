"""How the OpenAI API refuses a request: its words, `type`, `param` and `code`.

The sentences are the service's own, as its clients quote them in public reports, so
that an agent that reads them finds here what it will find there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True)
class Refusal:
    """The error that the API answers a request with."""

    message: str
    param: str | None = None
    code: str | None = None
    status: int = 400

    def body(self) -> dict[str, JsonValue]:
        """The error as the API writes it."""
        return {
            "error": {
                "message": self.message,
                "type": "invalid_request_error",
                "param": self.param,
                "code": self.code,
            }
        }


def listed(values: Sequence[str], last: str = "and") -> str:
    """``'a', 'b', and 'c'``, as the API enumerates."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) < 3:
        return f" {last} ".join(quoted)
    return f"{', '.join(quoted[:-1])}, {last} {quoted[-1]}"


def kind_of(value: object) -> str:
    """What the API calls a value of this type: ``an integer``, ``null``."""
    if value is None:
        return "null"
    kinds: dict[type, str] = {
        bool: "a boolean",
        int: "an integer",
        float: "a decimal number",
        str: "a string",
        list: "an array",
        dict: "an object",
    }
    return kinds[type(value)]


def missing(path: str) -> Refusal:
    """A required field is not there."""
    return Refusal(
        f"Missing required parameter: '{path}'.", path, "missing_required_parameter"
    )


def wrong_type(path: str, expected: str, value: object) -> Refusal:
    """A field holds a value of another type."""
    return Refusal(
        f"Invalid type for '{path}': expected {expected}, "
        f"but got {kind_of(value)} instead.",
        path,
        "invalid_type",
    )


def unknown_value(path: str, value: object, known: Sequence[str]) -> Refusal:
    """A field holds a word that the API does not know."""
    return Refusal(
        f"Invalid value: '{value}'. Supported values are: {listed(known)}.",
        path,
        "invalid_value",
    )


def unknown_parameter(name: str) -> Refusal:
    """A field that the API does not have."""
    return Refusal(f"Unknown parameter: '{name}'.", name, "unknown_parameter")


def empty_array(path: str) -> Refusal:
    """An array that must hold something holds nothing."""
    return Refusal(
        f"Invalid '{path}': empty array. Expected an array with minimum length 1, "
        "but got an empty array instead.",
        path,
        "empty_array",
    )


def empty_string(path: str) -> Refusal:
    """A text that must say something says nothing."""
    return Refusal(
        f"Invalid '{path}': empty string. Expected a string with minimum length 1, "
        "but got an empty string instead.",
        path,
        "empty_string",
    )


def too_long(path: str, text: str, length_max: int) -> Refusal:
    """A text has more characters than the API takes."""
    return Refusal(
        f"Invalid '{path}': string too long. Expected a string with maximum length "
        f"{length_max}, but got a string with length {len(text)} instead.",
        path,
        "string_above_max_length",
    )


def beyond(path: str, number: float, bound: float, side: str) -> Refusal:
    """A number is on the wrong side (``above`` or ``below``) of its bound."""
    kind = "decimal" if isinstance(bound, float) else "integer"
    limit, sign = ("maximum", "<=") if side == "above" else ("minimum", ">=")
    return Refusal(
        f"Invalid '{path}': {kind} {side} {limit} value. Expected a value {sign} "
        f"{bound:g}, but got {number} instead.",
        path,
        f"{kind}_{side}_{limit[:3]}_value",
    )


NO_KEY = Refusal(
    "You didn't provide an API key. You need to provide your API key in an "
    "Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY). "
    "Here it is the one in OPENAI_API_KEY.",
    status=401,
)
WRONG_KEY = Refusal(
    "Incorrect API key provided: ***. Here it is the one in OPENAI_API_KEY.",
    code="invalid_api_key",
    status=401,
)
"""Says nothing of the key that was sent: it may be a real one, and this is recorded."""

NO_MODEL = Refusal("you must provide a model parameter")


def not_json(reason: str) -> Refusal:
    """The body is no JSON object; ``reason`` says why."""
    return Refusal(
        "We could not parse the JSON body of your request. (HINT: This likely means "
        "you aren't using your HTTP library correctly. The OpenAI API expects a JSON "
        f"payload, but what was sent was not valid JSON: {reason}.)"
    )


def no_such_url(method: str, path: str) -> Refusal:
    """A path that is not served."""
    return Refusal(
        f"Invalid URL ({method} {path}). Here are served POST /v1/chat/completions, "
        "POST /v1/responses, GET /v1/responses/ID, GET /v1/models and GET "
        "/v1/models/ID.",
        status=404,
    )


def no_such_response(identity: str) -> Refusal:
    """An answer that was never given, or not kept."""
    return Refusal(f"Response with id '{identity}' not found.", status=404)


def wrong_method(method: str, path: str) -> Refusal:
    """A path that is served, to another method."""
    return Refusal(
        f"Not allowed to {method} on {path}. "
        "(HINT: Perhaps you meant to use a different HTTP method?)",
        status=405,
    )
