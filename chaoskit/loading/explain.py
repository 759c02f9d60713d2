"""pydantic's errors -> problems with a place, in plain words, with a likely fix."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from chaoskit.loading.later import CHOICES, not_yet
from chaoskit.loading.nodes import Location, Node, below, deepest
from chaoskit.loading.scalars import UnclearError, in_quotes, resolve
from chaoskit.loading.shape import annotation_at, fields_of
from chaoskit.model.errors import Flaw, Problem, did_you_mean

EXPECTED: Mapping[str, str] = {
    "string_type": "text",
    "string_too_short": "text that is not empty",
    "string_too_long": "at most {max_length} characters",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number of at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number of at most {le:.10g}",
    "tuple_type": "a list",
    "dict_type": "keys with their values",
    "model_type": "keys with their values",
    "too_short": "a list with something in it",
    "flaw": "{expected}",
}
"""What each of pydantic's errors means to someone who writes YAML."""


def explained(
    error: ValidationError, root: Node, model: type[BaseModel]
) -> Iterator[Problem]:
    """A problem for every error but those that only follow from others."""
    for detail in error.errors(include_url=False, include_input=False):
        node, _ = deepest(root, _without_turn_kind(detail["loc"]))
        if not _follows(detail, node):
            yield _problem(detail, root, model)


def _follows(detail: ErrorDetails, node: Node) -> bool:
    """Rules between fields come as flaws; a list of wrong items is not empty."""
    if detail["type"] == "too_short":
        return bool(node.items)
    return detail["type"] == "flaw" and not detail["loc"]


def placed(flaw: Flaw, root: Node) -> Problem:
    """A flaw with its place, which may be that of what should have held it."""
    node, missing = deepest(root, flaw.location)
    if missing:
        return _missing(node, missing[0], flaw.expected, flaw.hint)
    return node.problem(flaw.expected, flaw.hint)


def _missing(
    node: Node, key: str | int, expected: str, hint: str | None = None
) -> Problem:
    return node.place.problem(below(node.path, key), "nothing", expected, hint)


def _problem(detail: ErrorDetails, root: Node, model: type[BaseModel]) -> Problem:
    location = detail["loc"]
    node, rest = deepest(root, _without_turn_kind(location))
    match detail["type"]:
        case "missing":
            return _missing_key(node, model, location)
        case "extra_forbidden":
            return _unknown_key(node, model, location)
        case "enum":
            return _unknown_name(node, annotation_at(model, location))
    expected, hint = _expected(detail), _hint(detail, node)
    if rest == ("[key]",):
        return node.key_problem(str(location[-2]), expected, hint)
    return node.problem(expected, hint)


def _without_turn_kind(location: Location) -> Location:
    """pydantic puts the kind of a turn into the way to what the turn holds."""
    if location[:2] == ("llm", "script"):
        return location[:3] + location[4:]
    return location


def _missing_key(node: Node, model: type[BaseModel], location: Location) -> Problem:
    key = str(location[-1])
    field = fields_of(annotation_at(model, location[:-1]))[key]
    about = (field.description or key).removesuffix(".")
    return _missing(node, key, f"`{key}`: {about[0].lower()}{about[1:]}")


def _unknown_key(node: Node, model: type[BaseModel], location: Location) -> Problem:
    key, owner = str(location[-1]), annotation_at(model, location[:-1])
    known = fields_of(owner)
    expected = f"one of the keys {', '.join(known)}"
    return node.key_problem(key, expected, did_you_mean(key, known))


def _unknown_name(node: Node, kind: type[StrEnum]) -> Problem:
    choice = CHOICES[kind]
    expected = f"{choice.called}: {', '.join(kind)}"
    if node.value in choice.later:
        return node.problem(expected, not_yet(str(node.value)))
    return node.problem(expected, did_you_mean(str(node.value), kind))


def _expected(detail: ErrorDetails) -> str:
    template = EXPECTED.get(detail["type"])
    return template.format(**detail.get("ctx", {})) if template else detail["msg"]


def _hint(detail: ErrorDetails, node: Node) -> str | None:
    match detail["type"]:
        case "flaw":
            hint: str | None = detail["ctx"]["hint"]
            return hint
        case "string_type":
            return _quote_it(node)
        case "int_type" | "float_type" if _is_number(node.value):
            return f"write it without quotes: {node.value}"
        case "bool_type" if isinstance(node.value, str):
            return "in YAML 1.2 only true and false are not text"
        case "tuple_type" if isinstance(node.value, str):
            return f"write it as a list: [{in_quotes(node.value)}]"
    return None


def _quote_it(node: Node) -> str | None:
    if node.text:
        return f"quote it: {in_quotes(node.text)}"
    names = [key for key, entry in node.entries.items() if entry.value is None]
    if len(names) == len(node.entries) == 1:
        return f"braces need quotes: {in_quotes('{' + names[0] + '}')}"
    return None


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, str) and type(resolve(value)) in (int, float)
    except UnclearError:
        return False
