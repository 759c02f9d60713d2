"""The models that the endpoint lists; any other name is served too.

``created`` is fixed here and in all answers: a clock in whole seconds would look steady
in one pair of runs and move in the next.
"""

from pydantic import JsonValue

CREATED = 1_735_689_600


def model(name: str) -> dict[str, JsonValue]:
    """A model as ``GET /v1/models/NAME`` shows it; any name is served."""
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "chaoskit"}


def models(*names: str) -> dict[str, JsonValue]:
    """The list of ``GET /v1/models``."""
    return {"object": "list", "data": [model(name) for name in names]}
