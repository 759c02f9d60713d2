"""JSON in and out, as strict as the standard: what any service may be sent.

Python's own reader takes NaN, numbers beyond a double and half surrogate pairs; none
of them can be written down again, so a request that holds one is no JSON to us.
"""

import json
from collections.abc import Iterable
from typing import NoReturn

from pydantic import JsonValue

DEPTH_MAX = 100
"""Arrays and objects inside one another; deeper data is hostile, not useful."""


def parse(body: bytes) -> JsonValue:
    """Read a request's body.

    Raises:
        ValueError: with a clause that says what is wrong.
    """
    try:
        value: JsonValue = json.loads(body.decode(), parse_constant=_refuse)
        compact(value).encode()
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if _depth(value) > DEPTH_MAX:
        raise ValueError(_TOO_DEEP)
    return value


def compact(value: object) -> str:
    """The shortest JSON text of a value, its keys in their own order.

    Raises:
        ValueError: it holds a number that JSON cannot write.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def as_text(value: JsonValue) -> str:
    """How values are compared: a string is itself, all else its JSON text."""
    return value if isinstance(value, str) else compact(value)


def holds(value: JsonValue, part: JsonValue) -> bool:
    """Whether all that is in the part is in the value, which may hold more fields.

    A field that is null is none; 2 and 2.0 are equal, true and 1 are not.
    """
    if isinstance(value, dict) and isinstance(part, dict):
        return all(holds(value.get(name), inner) for name, inner in part.items())
    if isinstance(value, list) and isinstance(part, list):
        return len(value) == len(part) and all(map(holds, value, part))
    return value == part and isinstance(value, bool) == isinstance(part, bool)


_TOO_DEEP = f"it is nested deeper than {DEPTH_MAX} levels"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value")


def _depth(value: JsonValue) -> int:
    deep, level = 0, [value]
    while level := [inner for item in level for inner in _inner(item)]:
        deep += 1
    return deep


def _inner(item: JsonValue) -> Iterable[JsonValue]:
    if isinstance(item, dict):
        return item.values()
    return item if isinstance(item, list) else ()
