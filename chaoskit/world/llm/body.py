"""The body of a request to a model, as far as it can be read."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from chaoskit.wire.json_text import parse
from chaoskit.world.http import Request

Refusal = TypeVar("Refusal")


def body_of(
    request: Request, denied: Refusal | None, not_json: Callable[[str], Refusal]
) -> tuple[Mapping[str, Any], Refusal | None]:
    """The body, and why the request is refused unseen, in the words of its API.

    ``denied`` is why it is not let in, which counts for more than what it holds.
    """
    try:
        body = parse(request.body)
    except ValueError as wrong:
        return {}, denied or not_json(str(wrong))
    if not isinstance(body, dict):
        return {}, denied or not_json("it is no JSON object")
    return body, denied
