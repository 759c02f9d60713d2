"""Rules for plain JSON values and common fields, in the words of the OpenAI API.

A rule takes the path of a value and the value, and yields what is wrong, in the order
in which the API looks. Only the first refusal is ever told, and nothing of a rule runs
after it: what follows a `yield` may rely on what it refused.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from chaoskit.wire.openai.errors import (
    Refusal,
    beyond,
    empty_array,
    empty_string,
    listed,
    missing,
    too_long,
    unknown_value,
    wrong_type,
)

Refusals = Iterator[Refusal]
Rule = Callable[[str, Any], Refusals]

METADATA_PAIRS_MAX = 16
NAME_LENGTH_MAX = 64
_NAME = r"^[a-zA-Z0-9_-]+$"


def anything(path: str, value: Any) -> Refusals:
    """A field that is not looked into."""
    yield from ()


def boolean(path: str, value: Any) -> Refusals:
    """True or false."""
    if not isinstance(value, bool):
        yield wrong_type(path, "a boolean", value)


def string(path: str, value: Any, length_max: int | None = None) -> Refusals:
    """A text, of so many characters at most."""
    if not isinstance(value, str):
        yield wrong_type(path, "a string", value)
    if length_max is not None and len(value) > length_max:
        yield too_long(path, value, length_max)


def name(path: str, value: Any) -> Refusals:
    """The name of a function or a schema."""
    yield from string(path, value, NAME_LENGTH_MAX)
    if not value:
        yield empty_string(path)
    if not re.fullmatch(_NAME, value):
        yield Refusal(
            f"Invalid '{path}': string does not match pattern. Expected a string "
            f"that matches the pattern '{_NAME}'.",
            path,
            "invalid_value",
        )


def integer(
    path: str, value: Any, low: int | None = None, high: int | None = None
) -> Refusals:
    """A whole number within its bounds."""
    if not isinstance(value, int) or isinstance(value, bool):
        yield wrong_type(path, "an integer", value)
    yield from _within(path, value, low, high)


def decimal(path: str, value: Any, low: float, high: float) -> Refusals:
    """Any number within its bounds."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        yield wrong_type(path, "a decimal", value)
    yield from _within(path, value, low, high)


def _within(path: str, value: float, low: float | None, high: float | None) -> Refusals:
    if low is not None and value < low:
        yield beyond(path, value, low, "below")
    if high is not None and value > high:
        yield beyond(path, value, high, "above")


def one_of(path: str, value: Any, known: tuple[str, ...]) -> Refusals:
    """One of a few words."""
    if not isinstance(value, str):
        yield wrong_type(path, f"one of {listed(known, 'or')}", value)
    if value not in known:
        yield unknown_value(path, value, known)


def mapping(path: str, value: Any, called: str = "an object") -> Refusals:
    """An object of which nothing more is asked."""
    if not isinstance(value, dict):
        yield wrong_type(path, called, value)


def fields(path: str, value: Any, rules: Mapping[str, Rule]) -> Refusals:
    """An object with required fields; others may be there too."""
    yield from mapping(path, value)
    for field, rule in rules.items():
        if field not in value:
            yield missing(f"{path}.{field}")
        yield from rule(f"{path}.{field}", value[field])


def array(path: str, value: Any, items: str, each: Rule) -> Refusals:
    """An array that is not empty, all of its items alike."""
    if not isinstance(value, list):
        yield wrong_type(path, f"an array of {items}", value)
    if not value:
        yield empty_array(path)
    for index, item in enumerate(value):
        yield from each(f"{path}[{index}]", item)


def text_or_array(path: str, value: Any, called: str, each: Rule) -> Refusals:
    """A text, or an array of parts."""
    if isinstance(value, list):
        for index, part in enumerate(value):
            yield from each(f"{path}[{index}]", part)
    elif not isinstance(value, str):
        yield wrong_type(path, called, value)


def metadata(path: str, value: Any) -> Refusals:
    """Texts by name, as an object may be tagged with."""
    yield from mapping(path, value, "a metadata object")
    if len(value) > METADATA_PAIRS_MAX:
        yield Refusal(
            f"Invalid '{path}': too many properties. Expected an object with at most "
            f"{METADATA_PAIRS_MAX} properties, but got an object with {len(value)} "
            "properties instead.",
            path,
            "object_above_max_properties",
        )
    for key, text in value.items():
        yield from string(f"{path}.{key}", text, 512)


def function(path: str, value: Any) -> Refusals:
    """The name of a function, and the schema of its arguments, where it has one."""
    yield from fields(path, value, {"name": name})
    parameters = value.get("parameters")
    if parameters is None:
        return
    yield from mapping(f"{path}.parameters", parameters)
    kind = parameters.get("type")
    if parameters and kind != "object":
        yield Refusal(
            f"Invalid schema for function '{value['name']}': schema must be a "
            f"JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'.",
            f"{path}.parameters",
            "invalid_function_parameters",
        )
