"""What the tool service's answers say; they are the same over HTTP and over MCP.

A result is `{"result": ...}`; what was done is `{"effects": [{"args": ..., "result":
..., "idempotency_key": ...}]}`, the oldest first.
"""

import json
from typing import Any

from reference_agent.effects import Effect, Trouble


def result(body: str) -> str:
    """What a call came to. What was done is done, whether its answer is readable."""
    try:
        return as_text(json.loads(body)["result"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Trouble("its answer has no 'result'", sent=True) from error


def effects(body: str, arguments: dict[str, Any]) -> list[Effect]:
    """The effects that an answer lists, with exactly these arguments.

    A look-up matches text; `1` and `"1"` are equal there, and are not here.
    """
    try:
        return [
            Effect(as_text(effect["result"]), True, effect.get("idempotency_key"))
            for effect in json.loads(body)["effects"]
            if _as_json(effect["args"]) == _as_json(arguments)
        ]
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError) as error:
        raise Trouble("its answer lists no 'effects'", sent=False) from error


def as_text(value: Any) -> str:
    """A value as it is put into a query, or read by the model."""
    return value if isinstance(value, str) else json.dumps(value)


def _as_json(value: Any) -> str:
    """A value so that equal texts are equal values; for Python `1` equals `True`."""
    return json.dumps(value, sort_keys=True)
