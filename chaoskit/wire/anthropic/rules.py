"""Rules for plain JSON values, in the words of the Anthropic API.

A rule takes the path of a value and the value, and yields what is wrong, in the order
in which the API looks. Only the first refusal is ever told, and nothing of a rule runs
after it: what follows a `yield` may rely on what it refused.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from chaoskit.wire.anthropic.errors import (
    Refusals,
    at,
    either,
    expected,
    extra,
    missing,
    unknown_tag,
)

Rule = Callable[[str, Any], Refusals]


def anything(path: str, value: Any) -> Refusals:
    """A field that is not looked into."""
    yield from ()


def boolean(path: str, value: Any) -> Refusals:
    """True or false."""
    if not isinstance(value, bool):
        yield expected(path, "a valid boolean")


def string(path: str, value: Any, low: int = 0, high: int | None = None) -> Refusals:
    """A text of so many characters."""
    if not isinstance(value, str):
        yield expected(path, "a valid string")
    if len(value) < low:
        yield at(path, f"String should have at least {_characters(low)}")
    if high is not None and len(value) > high:
        yield at(path, f"String should have at most {_characters(high)}")


def _characters(number: int) -> str:
    return f"{number} character{'' if number == 1 else 's'}"


def pattern(path: str, value: Any, like: str) -> Refusals:
    """A text of a certain shape."""
    yield from string(path, value)
    if not re.fullmatch(like, value):
        yield at(path, f"String should match pattern '{like}'")


def one_of(path: str, value: Any, known: Sequence[str]) -> Refusals:
    """One of a few words."""
    if value not in known:
        yield expected(path, either(known))


def integer(path: str, value: Any, low: int | None = None) -> Refusals:
    """A whole number that is not too small."""
    if not isinstance(value, int) or isinstance(value, bool):
        yield expected(path, "a valid integer")
    if low is not None and value < low:
        yield expected(path, f"greater than or equal to {low}")


def number(path: str, value: Any, low: float, high: float) -> Refusals:
    """Any number within its bounds."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        yield expected(path, "a valid number")
    if value < low:
        yield expected(path, f"greater than or equal to {low:g}")
    if value > high:
        yield expected(path, f"less than or equal to {high:g}")


def mapping(path: str, value: Any) -> Refusals:
    """An object of which nothing more is asked."""
    if not isinstance(value, dict):
        yield expected(path, "an object")


def array(path: str, value: Any, each: Rule) -> Refusals:
    """An array, all of its items alike."""
    if not isinstance(value, list):
        yield expected(path, "a valid list")
    for index, item in enumerate(value):
        yield from each(f"{path}.{index}", item)


def optional(rule: Rule) -> Rule:
    """The rule, with null for a field that is not given."""
    return partial(_optional, rule=rule)


def _optional(path: str, value: Any, rule: Rule) -> Refusals:
    if value is not None:
        yield from rule(path, value)


def record(
    path: str,
    value: Any,
    required: Mapping[str, Rule],
    allowed: Mapping[str, Rule],
) -> Refusals:
    """An object of known fields and no others, which its type was asked for."""
    for field, rule in required.items():
        if field not in value:
            yield missing(_inside(path, field))
        yield from rule(_inside(path, field), value[field])
    for field, rule in allowed.items():
        if field in value:
            yield from rule(_inside(path, field), value[field])
    for field in value:
        if field not in required and field not in allowed:
            yield extra(_inside(path, field))


def _inside(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field


def tagged(
    path: str, value: Any, kinds: Mapping[str, Rule], without: str | None = None
) -> Refusals:
    """An object whose `type` says which rule it is under.

    The tag becomes part of the path of what is wrong in it. ``without`` is the type
    of an object that names none.
    """
    if not isinstance(value, dict):
        yield expected(path, "an object")
    kind = value.get("type")
    kind = without if kind is None else kind
    if kind is None:
        yield missing(f"{path}.type")
    if not isinstance(kind, str) or kind not in kinds:
        yield unknown_tag(path, str(kind), sorted(kinds))
    yield from kinds[kind](f"{path}.{kind}", value)
